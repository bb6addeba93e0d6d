/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The crowd of the event stream benchmark: joins visitors, holds one event stream for each, and
 * measures when they get events. It reads commands from standard input, one per line, and answers
 * each with one line of figures. bench/sse starts the system and sends the commands.
 *
 *     join N     N visitors join; their tickets are kept in the order of their places
 *     open N     event streams for the N visitors behind the first, until all had their first event
 *     leave      the visitor at the front leaves; until all behind got the new position
 *     watch      does nothing, until all got the new position after another visitor left
 *     turns N    N times: the admitted visitor completes; until the next is told "admitted"
 *     quiet S    only reads for S seconds; answers with the number of events that came
 *     slow N     N streams that are never read, once all were answered
 *     close      closes all streams
 *
 * All times are in milliseconds, and end when this program has read the event.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum {
    VISITORS_MAX = 100000,
    TICKET_MAX = 255,
    JOINERS = 64,        /* connections that join at the same time */
    ADDRESSES = 200,     /* 127.0.0.2 and up: ports are counted per address */
    BUFFER = 4096,       /* holds any answer, and any event */
    PATIENCE_MS = 20000, /* until what must happen counts as lost */
    SLOW_WINDOW = 2048,  /* receive buffer of a stream that is not read */
};

struct visitor {
    char ticket[TICKET_MAX + 1];
    uint64_t joined_at; /* position as told by the join; 0: admitted at once */
    int fd;             /* of the stream; -1: none */
    uint64_t position;  /* as last heard, 0: not waiting any more, or nothing heard */
    double heard_ms;    /* when `position` changed, or "admitted" came */
    bool any, admitted;
    size_t length; /* of `text`, what was read of the next event */
    char *text;
};

struct crowd {
    unsigned short port;
    const char *queue;
    int epoll;
    int control; /* a connection of its own for leave and complete */
    struct visitor *visitors;
    size_t n, streams, front; /* front: the first who still waits */
    uint64_t events;
    size_t started; /* streams that had their first event */
};

static void die(const char *what)
{
    fprintf(stderr, "sse_bench: %s: %s\n", what, errno != 0 ? strerror(errno) : "unexpected");
    exit(1);
}

static double now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

/* ---- plain HTTP ---- */

/* A connection from the address with that number; window 0: the system's. */
static int connect_from(unsigned short port, size_t number, int window)
{
    int on = 1;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in from = {.sin_family = AF_INET,
                               .sin_addr.s_addr =
                                   htonl(INADDR_LOOPBACK + 1 + (uint32_t)(number % ADDRESSES))};
    struct sockaddr_in to = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    if (fd < 0)
        die("socket");
    if (window > 0 && setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &window, sizeof(window)) != 0)
        die("SO_RCVBUF");
    /* Ends at once: a connection that is closed the usual way stays in the kernel's tables for two
     * minutes, and with 300,000 in them connection tracking (Docker, firewalls) drops packets. */
    struct linger linger = {.l_onoff = 1, .l_linger = 0};
    if (setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger)) != 0 ||
        setsockopt(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &on, sizeof(on)) != 0 ||
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)) != 0 ||
        bind(fd, (struct sockaddr *)&from, sizeof(from)) != 0 ||
        connect(fd, (struct sockaddr *)&to, sizeof(to)) != 0)
        die("connect");
    return fd;
}

static void request(const struct crowd *crowd, int fd, const char *method, const char *call,
                    const char *ticket)
{
    char text[1024];
    int length =
        snprintf(text, sizeof(text), "%s /v1/queues/%s/%s HTTP/1.1\r\nHost: bench\r\n%s%s%s%s\r\n",
                 method, crowd->queue, call, ticket != NULL ? "Authorization: Bearer " : "",
                 ticket != NULL ? ticket : "", ticket != NULL ? "\r\n" : "",
                 *method == 'P' ? "Content-Length: 0\r\n" : "");
    if (send(fd, text, (size_t)length, MSG_NOSIGNAL) != length)
        die("send");
}

/* Reads one whole answer, which must be 200; its body is at the result. */
static const char *answer(int fd, char text[static BUFFER])
{
    size_t length = 0;
    for (;;) {
        ssize_t n = recv(fd, text + length, BUFFER - 1 - length, 0);
        if (n <= 0)
            die("answer");
        length += (size_t)n;
        text[length] = '\0';
        const char *body = strstr(text, "\r\n\r\n");
        const char *declared = strstr(text, "Content-Length: ");
        if (body == NULL || declared == NULL)
            continue;
        body += 4;
        if (strlen(body) < strtoul(declared + 16, NULL, 10))
            continue;
        if (strncmp(text, "HTTP/1.1 200", 12) == 0)
            return body;
        fprintf(stderr, "sse_bench: %s\n", text);
        errno = 0;
        die("answer");
    }
}

/* The number of that member; 0 when it is absent. */
static uint64_t number_of(const char *json, const char *quoted_name)
{
    const char *at = strstr(json, quoted_name);
    return at != NULL ? strtoull(at + strlen(quoted_name) + 1, NULL, 10) : 0;
}

/* ---- joining ---- */

static void keep_ticket(struct visitor *visitor, const char *view)
{
    static const char name[] = "\"ticket\":\"";
    const char *ticket = strstr(view, name);
    size_t length = ticket != NULL ? strcspn(ticket + sizeof(name) - 1, "\"") : 0;
    if (length == 0 || length > TICKET_MAX)
        die("ticket");
    memcpy(visitor->ticket, ticket + sizeof(name) - 1, length);
    visitor->joined_at = number_of(view, "\"position\"");
    visitor->fd = -1;
}

static int by_place(const void *a, const void *b)
{
    const struct visitor *left = a, *right = b;
    return (left->joined_at > right->joined_at) - (left->joined_at < right->joined_at);
}

/* The first in an empty line is admitted any moment: until then the positions of those behind are
 * counted with it, afterwards without. */
static void await_admission(const struct crowd *crowd, int fd, struct visitor *first)
{
    char text[BUFFER];
    double start = now_ms();
    while (first->joined_at == 1 && now_ms() - start < PATIENCE_MS) {
        request(crowd, fd, "GET", "status", first->ticket);
        first->joined_at = number_of(answer(fd, text), "\"position\"");
    }
}

static void join(struct crowd *crowd, size_t n)
{
    int fds[JOINERS];
    char text[BUFFER];
    double start = now_ms();
    for (size_t i = 0; i < JOINERS; i++)
        fds[i] = connect_from(crowd->port, i, 0);
    for (size_t done = 0, turn = 1; done < n; done += turn) {
        /* the first alone, so that it is the one who is admitted */
        turn = done == 0 ? 1 : n - done < JOINERS ? n - done : JOINERS;
        for (size_t i = 0; i < turn; i++)
            request(crowd, fds[i], "POST", "join", NULL);
        for (size_t i = 0; i < turn; i++)
            keep_ticket(&crowd->visitors[done + i], answer(fds[i], text));
        if (done == 0)
            await_admission(crowd, fds[0], &crowd->visitors[0]);
    }
    for (size_t i = 0; i < JOINERS; i++)
        close(fds[i]);
    qsort(crowd->visitors, n, sizeof(*crowd->visitors), by_place);
    crowd->n = n;
    crowd->front = 1;
    printf("%.0f\n", now_ms() - start);
}

/* ---- streams ---- */

/* One event, or the head of the answer. */
static void on_event(struct crowd *crowd, struct visitor *visitor, const char *event)
{
    uint64_t position = visitor->position;
    if (strncmp(event, "event: position", 15) == 0)
        position = number_of(event, "\"position\"");
    else if (strncmp(event, "event: admitted", 15) == 0)
        visitor->admitted = true;
    else if (strncmp(event, "event: ended", 12) != 0)
        return;
    if (visitor->admitted || strncmp(event, "event: ended", 12) == 0)
        position = 0;
    crowd->events++;
    if (!visitor->any)
        crowd->started++;
    if (!visitor->any || position != visitor->position)
        visitor->heard_ms = now_ms();
    visitor->any = true;
    visitor->position = position;
}

static void take(struct crowd *crowd, struct visitor *visitor)
{
    ssize_t n = recv(visitor->fd, visitor->text + visitor->length, BUFFER - 1 - visitor->length,
                     MSG_DONTWAIT);
    if (n < 0 && errno == EAGAIN)
        return;
    if (n <= 0)
        die("a stream ended");
    visitor->length += (size_t)n;
    visitor->text[visitor->length] = '\0';
    char *from = visitor->text;
    for (char *end; (end = strstr(from, "\n\n")) != NULL; from = end + 2) {
        *end = '\0';
        on_event(crowd, visitor, from);
    }
    visitor->length -= (size_t)(from - visitor->text);
    memmove(visitor->text, from, visitor->length);
}

/* Reads what is there; waits so long for more. */
static void pump(struct crowd *crowd, int timeout_ms)
{
    struct epoll_event ready[256];
    int n = epoll_wait(crowd->epoll, ready, 256, timeout_ms);
    for (int i = 0; i < n; i++)
        take(crowd, ready[i].data.ptr);
}

static void open_streams(struct crowd *crowd, size_t n)
{
    double start = now_ms();
    for (size_t i = 0; i < n; i++) {
        struct visitor *visitor = &crowd->visitors[crowd->front + i];
        struct epoll_event event = {.events = EPOLLIN, .data.ptr = visitor};
        visitor->text = malloc(BUFFER);
        if (visitor->text == NULL)
            die("malloc");
        visitor->fd = connect_from(crowd->port, i, 0);
        request(crowd, visitor->fd, "GET", "events", visitor->ticket);
        if (epoll_ctl(crowd->epoll, EPOLL_CTL_ADD, visitor->fd, &event) != 0)
            die("epoll_ctl");
        if (i % 32 == 0)
            pump(crowd, 0);
    }
    crowd->streams = n;
    while (crowd->started < n && now_ms() - start < PATIENCE_MS)
        pump(crowd, 10);
    printf("%zu %.0f\n", crowd->started, now_ms() - start);
}

static void close_streams(struct crowd *crowd)
{
    for (size_t i = 0; i < crowd->n; i++) {
        if (crowd->visitors[i].fd >= 0)
            close(crowd->visitors[i].fd);
        crowd->visitors[i].fd = -1;
        free(crowd->visitors[i].text);
        crowd->visitors[i].text = NULL;
    }
    crowd->streams = 0;
    close(crowd->control);
    crowd->control = -1;
    puts("closed");
}

/* ---- measuring ---- */

static int by_size(const void *a, const void *b)
{
    double left = *(const double *)a, right = *(const double *)b;
    return (left > right) - (left < right);
}

/* lost, p50, p99, p99.9, max; sorts. */
static void print_spread(double *values, size_t n, size_t lost)
{
    qsort(values, n, sizeof(*values), by_size);
    if (n == 0)
        printf("%zu nan nan nan nan\n", lost);
    else
        printf("%zu %.2f %.2f %.2f %.2f\n", lost, values[n / 2], values[n * 99 / 100],
               values[n * 999 / 1000], values[n - 1]);
}

static void act(struct crowd *crowd, const char *call, const char *ticket)
{
    if (crowd->control < 0)
        crowd->control = connect_from(crowd->port, 0, 0);
    request(crowd, crowd->control, "POST", call, ticket);
}

static void leave(struct crowd *crowd)
{
    char text[BUFFER];
    struct visitor *leaver = &crowd->visitors[crowd->front++];
    size_t n = crowd->streams - crowd->front + 1;
    const struct visitor *behind = &crowd->visitors[crowd->front];
    double *took = malloc(n * sizeof(*took));
    if (took == NULL)
        die("malloc");
    double start = now_ms();
    act(crowd, "leave", leaver->ticket);
    size_t heard = 0;
    while (heard < n && now_ms() - start < PATIENCE_MS) {
        pump(crowd, 5);
        while (heard < n && behind[heard].position == heard + 1)
            heard++;
    }
    answer(crowd->control, text);
    size_t m = 0;
    for (size_t i = 0; i < n; i++) {
        if (behind[i].position == i + 1)
            took[m++] = behind[i].heard_ms - start;
    }
    print_spread(took, m, n - m);
    free(took);
}

/* A visitor of another crowd leaves meanwhile. */
static void watch(struct crowd *crowd)
{
    size_t n = crowd->streams;
    const struct visitor *all = &crowd->visitors[crowd->front];
    uint64_t *before = malloc(n * sizeof(*before));
    double *took = malloc(n * sizeof(*took));
    if (before == NULL || took == NULL)
        die("malloc");
    double start = now_ms();
    for (size_t i = 0; i < n; i++)
        before[i] = all[i].position;
    size_t heard = 0;
    while (heard < n && now_ms() - start < PATIENCE_MS) {
        pump(crowd, 5);
        while (heard < n && all[heard].position < before[heard])
            heard++;
    }
    size_t m = 0;
    for (size_t i = 0; i < n; i++) {
        if (all[i].position < before[i])
            took[m++] = all[i].heard_ms - start;
    }
    print_spread(took, m, n - m);
    free(before);
    free(took);
}

static void turns(struct crowd *crowd, size_t n)
{
    char text[BUFFER];
    size_t m = 0;
    double *took = malloc(n * sizeof(*took));
    if (took == NULL)
        die("malloc");
    const struct visitor *inside = &crowd->visitors[0];
    for (size_t i = 0; i < n; i++) {
        const struct visitor *next = &crowd->visitors[crowd->front++];
        double start = now_ms();
        act(crowd, "complete", inside->ticket);
        while (!next->admitted && now_ms() - start < PATIENCE_MS)
            pump(crowd, 5);
        answer(crowd->control, text);
        if (next->admitted)
            took[m++] = next->heard_ms - start;
        inside = next;
    }
    print_spread(took, m, n - m);
    free(took);
}

static void quiet(struct crowd *crowd, size_t seconds)
{
    uint64_t events = crowd->events;
    double end = now_ms() + (double)seconds * 1e3;
    while (now_ms() < end)
        pump(crowd, 50);
    printf("%" PRIu64 "\n", crowd->events - events);
}

static void open_slow(struct crowd *crowd, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct visitor *visitor = &crowd->visitors[crowd->front + i];
        visitor->fd = connect_from(crowd->port, i, SLOW_WINDOW);
        request(crowd, visitor->fd, "GET", "events", visitor->ticket);
    }
    size_t answered = 0;
    for (size_t i = 0; i < n; i++) {
        struct pollfd wait = {.fd = crowd->visitors[crowd->front + i].fd, .events = POLLIN};
        if (poll(&wait, 1, PATIENCE_MS) == 1)
            answered++;
    }
    printf("%zu\n", answered);
}

static bool obey(struct crowd *crowd, const char *line)
{
    char verb[16] = "";
    size_t length = strcspn(line, " \n");
    if (length >= sizeof(verb))
        return false;
    memcpy(verb, line, length);
    size_t n = strtoul(line + length, NULL, 10); /* 0: none given */
    bool fits = n > 0 && (n + crowd->front <= crowd->n || strcmp(verb, "quiet") == 0);
    if (strcmp(verb, "join") == 0 && n > 0 && n <= VISITORS_MAX)
        join(crowd, n);
    else if (strcmp(verb, "open") == 0 && fits)
        open_streams(crowd, n);
    else if (strcmp(verb, "leave") == 0 && crowd->streams > crowd->front)
        leave(crowd);
    else if (strcmp(verb, "watch") == 0 && crowd->streams > 0)
        watch(crowd);
    else if (strcmp(verb, "turns") == 0 && fits)
        turns(crowd, n);
    else if (strcmp(verb, "quiet") == 0 && fits)
        quiet(crowd, n);
    else if (strcmp(verb, "slow") == 0 && fits)
        open_slow(crowd, n);
    else if (strcmp(verb, "close") == 0)
        close_streams(crowd);
    else
        return false;
    return fflush(stdout) == 0;
}

int main(int argc, char **argv)
{
    if (argc != 3) {
        fputs("usage: sse_bench PORT QUEUE   (commands on standard input)\n", stderr);
        return 2;
    }
    struct crowd crowd = {.port = (unsigned short)strtoul(argv[1], NULL, 10),
                          .queue = argv[2],
                          .epoll = epoll_create1(EPOLL_CLOEXEC),
                          .control = -1,
                          .visitors = calloc(VISITORS_MAX, sizeof(*crowd.visitors))};
    if (crowd.epoll < 0 || crowd.visitors == NULL)
        die("start");
    for (size_t i = 0; i < VISITORS_MAX; i++)
        crowd.visitors[i].fd = -1;
    char line[64];
    int status = 0;
    while (status == 0 && fgets(line, sizeof(line), stdin) != NULL) {
        if (!obey(&crowd, line)) {
            fprintf(stderr, "sse_bench: cannot do: %s", line);
            status = 2;
        }
    }
    for (size_t i = 0; i < VISITORS_MAX; i++)
        free(crowd.visitors[i].text);
    free(crowd.visitors);
    return status;
}
