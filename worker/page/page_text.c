#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "worker/page/page_text.h"

static const struct tl_page_message messages[] = {
    /* titles of the browser tab; {0} is the position */
    {"title_waiting", {"No. {0} in line", "대기 {0}번째"}},
    {"title_pending", {"Joining the line", "대기열에 들어가는 중"}},
    {"title_active", {"It is your turn", "입장할 차례입니다"}},
    {"title_over", {"No longer in line", "대기가 끝났습니다"}},
    {"title_closed", {"No such line", "없는 대기열입니다"}},
    {"title_blocked", {"You cannot join from here", "줄을 설 수 없습니다"}},
    {"title_invited", {"By invitation only", "초대받은 분만 입장할 수 있습니다"}},
    {"title_full", {"The line is full", "대기열이 가득 찼습니다"}},
    {"title_outside", {"Join the line", "줄 서기"}},
    {"title_down", {"One moment, please", "잠시만 기다려 주세요"}},

    /* waiting */
    {"waiting_head", {"You are in line", "순서를 기다리고 있습니다"}},
    {"position_label", {"Your place in line", "내 순서"}},
    {"position_unit", {"", "번째"}},
    {"progress_label", {"Progress since you joined", "줄을 선 뒤 진행된 정도"}},
    {"ahead_label", {"People ahead of you", "내 앞 대기 인원"}},
    {"ahead_value", {"{0}", "{0}명"}},
    {"eta_label", {"Estimated wait", "예상 대기 시간"}},
    {"next_head", {"What happens next", "이렇게 진행됩니다"}},
    {"next_text",
     {"When it is your turn, this page opens the shop by itself. There is no need to reload it.",
      "차례가 되면 이 페이지에서 자동으로 입장합니다. 새로 고침하지 않아도 됩니다."}},
    {"kept_text",
     {"You can close this page: your place is kept for {0}. To continue, open it again in the same "
      "browser.",
      "페이지를 닫아도 {0} 동안 자리가 유지됩니다. 같은 브라우저에서 다시 열면 이어집니다."}},
    {"notice_label", {"From the organiser", "안내"}},

    /* not open yet, paused */
    {"before_head", {"Not open yet", "아직 열리지 않았습니다"}},
    {"before_text",
     {"Your place in line is reserved. The line starts to move at the opening.",
      "자리는 이미 확보되었습니다. 문이 열리면 차례대로 입장합니다."}},
    {"opens_label", {"Opens", "여는 시각"}},
    {"countdown_label", {"Time left", "남은 시간"}},
    {"opening", {"any moment now", "곧 열립니다"}},
    {"drawing_head", {"Places are drawn by lot", "순서는 추첨으로 정합니다"}},
    {"drawing_text",
     {"Everyone who is here at the opening takes part. Coming earlier or more often makes no "
      "difference.",
      "문이 열릴 때 이곳에 계신 모든 분이 추첨에 참여합니다. 먼저 오셔도 차이가 없습니다."}},
    {"drawing_then",
     {"Your position appears here after the draw. Those who come later stand behind.",
      "추첨이 끝나면 이 화면에 순서가 표시됩니다. 늦게 오신 분은 그 뒤에 섭니다."}},
    {"called_head", {"You are next", "바로 다음 차례입니다"}},
    {"called_text",
     {"It is your turn, but at this moment every place is taken. You enter as soon as one is free, "
      "before everyone else.",
      "입장할 차례이지만 지금은 자리가 모두 찼습니다. 자리가 나는 대로 가장 먼저 입장합니다."}},
    {"recovering_head", {"The line is being restored", "대기열을 복구하고 있습니다"}},
    {"recovering_text",
     {"After a fault everyone returns to their place, and until then no one is admitted. Your "
      "place in the order stays the same; the numbers may change for a moment.",
      "장애 이후 모두가 원래 순서로 돌아오는 중이며, 그동안에는 입장이 멈춥니다. 순서는 그대로 "
      "유지되고 번호는 잠시 바뀔 수 있습니다."}},
    {"paused_head", {"The line is paused", "입장이 잠시 멈췄습니다"}},
    {"paused_text",
     {"No one is admitted at the moment. Your place stays the same.",
      "지금은 아무도 입장하지 않습니다. 순서는 그대로 유지됩니다."}},

    {"draining_head", {"No one else can join", "새로 줄을 설 수 없습니다"}},
    {"draining_text",
     {"You keep your place, and everyone in line is admitted as before.",
      "이미 줄에 계신 분은 순서대로 입장합니다."}},
    {"no_capacity_head", {"No one is admitted at the moment", "지금은 입장하지 않습니다"}},
    {"no_capacity_text",
     {"The number of visitors is set to 0. Your place stays the same.",
      "입장 인원이 0명으로 정해져 있습니다. 순서는 그대로 유지됩니다."}},
    {"title_shut", {"Closed", "닫혔습니다"}},
    {"title_sold_out", {"Sold out", "매진되었습니다"}},
    {"title_passthrough", {"No waiting", "기다리지 않고 입장할 수 있습니다"}},
    {"shut_head", {"The line is closed", "대기열이 닫혔습니다"}},
    {"shut_text", {"No one can join at the moment.", "지금은 새로 줄을 설 수 없습니다."}},
    {"sold_out_head", {"Sold out", "매진되었습니다"}},
    {"sold_out_text", {"There is nothing left.", "남은 수량이 없습니다."}},
    {"passthrough_head", {"No waiting", "기다리지 않고 입장할 수 있습니다"}},
    {"passthrough_text",
     {"There is no line at the moment. You can return to the site you came from.",
      "지금은 기다리실 필요가 없습니다. 원래 보시던 사이트로 돌아가시면 됩니다."}},

    /* pending */
    {"pending_head", {"Getting your number", "번호를 받고 있습니다"}},
    {"pending_text",
     {"You are already in line. Your number appears here in a moment.",
      "이미 줄에 서 계십니다. 곧 번호가 나타납니다."}},

    /* admitted */
    {"active_head", {"It is your turn", "입장할 차례입니다"}},
    {"active_text", {"Opening the shop…", "지금 입장합니다…"}},
    {"active_link", {"Enter now", "지금 입장하기"}},
    {"active_nowhere",
     {"You can now return to the site you came from.",
      "이제 원래 보시던 사이트로 돌아가시면 됩니다."}},
    {"remains_label", {"Time left:", "남은 시간:"}},
    {"active_until", {"Your time there is reserved until {0}.", "{0}까지 이용하실 수 있습니다."}},

    /* over */
    {"completed_head", {"All done", "이용이 끝났습니다"}},
    {"completed_text",
     {"Your visit is complete. Thank you for waiting.",
      "이용이 완료되었습니다. 기다려 주셔서 감사합니다."}},
    {"left_head", {"You left the line", "대기를 그만두셨습니다"}},
    {"left_text",
     {"Your place has been given up. You can join again at the end of the line.",
      "자리를 내놓으셨습니다. 다시 줄을 서면 맨 뒤에서 시작합니다."}},
    {"expired_head", {"Your time is up", "이용 시간이 끝났습니다"}},
    {"expired_text",
     {"The time reserved for your visit is over.", "이용하실 수 있는 시간이 지났습니다."}},
    {"unclaimed_head", {"Your turn has passed", "차례가 지났습니다"}},
    {"unclaimed_text",
     {"It was your turn, but you did not enter in time, so the next person was admitted.",
      "차례가 되었지만 시간 안에 입장하지 않아 다음 분이 입장했습니다."}},
    {"absent_head", {"Your place was given up", "자리가 유지되지 않았습니다"}},
    {"absent_text",
     {"This page was away for longer than a place is kept ({0}).",
      "자리가 유지되는 시간({0})보다 오래 페이지를 떠나 계셨습니다."}},
    {"ended_head", {"Your place has ended", "대기가 끝났습니다"}},
    {"ended_text",
     {"You are no longer in line. You can join again.",
      "지금은 줄에 서 있지 않습니다. 다시 줄을 설 수 있습니다."}},
    {"lost_head", {"Please join again", "다시 줄을 서 주세요"}},
    {"lost_text",
     {"This browser has no place in the present line. If the line was started again, everyone has "
      "to join again.",
      "이 브라우저에는 현재 대기열의 자리가 없습니다. 대기열이 새로 시작되었다면 모두 다시 줄을 "
      "서야 합니다."}},
    {"removed_head", {"Your place was removed", "자리가 취소되었습니다"}},
    {"removed_text",
     {"The operator of this line has removed your place. If you think this is a mistake, please "
      "contact the site you came from.",
      "운영자가 이 자리를 취소했습니다. 잘못된 조치라고 생각되면 원래 보시던 사이트에 문의해 "
      "주세요."}},
    {"blocked_head", {"You cannot join from here", "이 네트워크에서는 줄을 설 수 없습니다"}},
    {"blocked_text",
     {"The operator of this line has blocked the network that you use. Try another network, such "
      "as "
      "your phone's, or contact the site you came from.",
      "운영자가 지금 쓰시는 네트워크를 차단했습니다. 휴대전화 등 다른 네트워크로 시도하거나 원래 "
      "보시던 "
      "사이트에 문의해 주세요."}},
    {"closed_head", {"This line does not exist", "없는 대기열입니다"}},
    {"closed_text",
     {"It may be over, or the address is misspelt.",
      "이미 끝났거나 주소가 잘못되었을 수 있습니다."}},
    {"invited_head", {"By invitation only", "초대받은 분만 입장할 수 있습니다"}},
    {"invited_text",
     {"Please open the link in your invitation.", "받으신 초대 링크로 들어와 주세요."}},
    {"full_head", {"The line is full", "대기열이 가득 찼습니다"}},
    {"full_text",
     {"No more people can join at the moment. This page tries again by itself and joins as soon as "
      "there is room.",
      "지금은 더 줄을 설 수 없습니다. 이 페이지가 자동으로 다시 시도하여, 자리가 나면 바로 줄을 "
      "섭니다."}},
    {"outside_head", {"You are not in line yet", "아직 줄을 서지 않았습니다"}},
    {"outside_text",
     {"Join the line to get a place. You enter when it is your turn.",
      "줄을 서면 순서를 받습니다. 차례가 되면 입장합니다."}},
    {"challenge_head", {"One moment, please", "잠시만 기다려 주세요"}},
    {"challenge_text",
     {"Before you get your place, this page checks that no program takes all the places. It takes "
      "a moment and continues by itself.",
      "자리를 드리기 전에, 프로그램이 자리를 독차지하지 못하도록 확인하고 있습니다. 잠시 후 "
      "자동으로 이어집니다."}},
    {"challenge_label", {"Progress of the check", "확인 진행 정도"}},
    {"challenge_failed", {"The check did not succeed.", "확인에 실패했습니다."}},
    {"challenge_again", {"Try again", "다시 시도하기"}},
    {"challenge_wait_text",
     {"JavaScript is off in your browser. Please wait {0}: then this page continues by itself, or "
      "with the button.",
      "브라우저에서 자바스크립트가 꺼져 있습니다. {0} 기다리시면 자동으로, 또는 버튼을 눌러 "
      "이어집니다."}},
    {"service_by_text",
     {"The check is done by {0}. If it asks you something, please answer.",
      "이 확인은 {0}에서 합니다. 질문이 나타나면 답해 주세요."}},
    {"service_noscript",
     {"This line is for people, and its check needs JavaScript. Please allow JavaScript for this "
      "page and load it again, or open it in another browser.",
      "이 대기열은 사람인지 확인한 뒤에 줄을 설 수 있으며, 확인에 자바스크립트가 필요합니다. 이 "
      "페이지의 자바스크립트를 허용하고 새로 고치시거나, 다른 브라우저로 열어 주세요."}},
    {"service_failed",
     {"The check could not be loaded or did not succeed. If your browser blocks parts of this "
      "page, "
      "please allow them.",
      "확인을 불러오지 못했거나 확인에 실패했습니다. 브라우저에서 이 페이지의 일부가 차단되어 "
      "있다면 허용해 주세요."}},
    {"challenge_join", {"Join the line", "줄 서기"}},
    {"down_head", {"One moment, please", "잠시만 기다려 주세요"}},
    {"down_text",
     {"The line cannot be reached right now. If you already have a place, it is kept. This page "
      "tries again by itself.",
      "지금은 대기열에 연결할 수 없습니다. 이미 자리가 있다면 그대로 유지됩니다. 이 페이지가 "
      "자동으로 다시 시도합니다."}},

    /* buttons, links, small print */
    {"leave", {"Leave the line", "대기 그만두기"}},
    {"leave_sure",
     {"Your place cannot be given back to you.", "그만두면 지금 자리로 돌아올 수 없습니다."}},
    {"leave_yes", {"Yes, leave", "네, 그만둘게요"}},
    {"join", {"Join the line", "줄 서기"}},
    {"join_again", {"Join again", "다시 줄 서기"}},
    {"refresh_now", {"Refresh now", "지금 새로 고침"}},
    {"refreshes_every",
     {"This page refreshes itself every {0}.", "이 페이지는 {0}마다 자동으로 새로 고쳐집니다."}},
    {"updated_at", {"Updated at {0}", "{0} 기준"}},
    {"stale_at",
     {"The line is being reconnected. This is the state at {0}; your place is kept.",
      "대기열에 다시 연결하고 있습니다. {0} 기준이며 자리는 그대로입니다."}},
    {"cookies_off",
     {"Please allow cookies for this site: your place is remembered in one.",
      "이 사이트의 쿠키를 허용해 주세요. 자리가 쿠키에 저장됩니다."}},
    {"languages_label", {"Language", "언어"}},

    /* for the script: connection trouble, announcements to screen readers */
    {"trouble_server",
     {"The line is being reconnected. Nobody loses a place. Trying again…",
      "대기열에 다시 연결하고 있습니다. 자리는 그대로입니다. 다시 시도하는 중…"}},
    {"trouble_offline",
     {"You are offline. Your place is kept until {0}.",
      "인터넷 연결이 끊겼습니다. 자리는 {0}까지 유지됩니다."}},
    {"trouble_long",
     {"There has been no connection for a while. Your place shows as soon as it is back.",
      "한동안 연결되지 않았습니다. 연결되면 바로 순서를 알려 드립니다."}},
    {"say_waiting",
     {"You are number {0} in line. Estimated wait: {1}.",
      "현재 {0}번째입니다. 예상 대기 시간: {1}."}},
    {"say_back", {"The connection is back.", "다시 연결되었습니다."}},

    /* durations, and ranges of them */
    {"day", {"{0} day", "{0}일"}},
    {"days", {"{0} days", "{0}일"}},
    {"hour", {"{0} hour", "{0}시간"}},
    {"hours", {"{0} hours", "{0}시간"}},
    {"minute", {"{0} minute", "{0}분"}},
    {"minutes", {"{0} minutes", "{0}분"}},
    {"second", {"{0} second", "{0}초"}},
    {"seconds", {"{0} seconds", "{0}초"}},
    /* eta_reason: why there is no estimate, or why it grew */
    {"why_not_known",
     {"There is no estimate yet: too few people have finished so far.",
      "아직 이용을 마친 분이 적어 예상 시간을 알 수 없습니다."}},
    {"why_paused", {"Nobody is being let in at the moment.", "지금은 입장이 멈춰 있습니다."}},
    {"why_no_capacity",
     {"Nobody can be let in at the moment.", "지금은 입장할 수 있는 자리가 없습니다."}},
    {"why_stalled",
     {"The line has not moved for a while. Your place stays the same.",
      "줄이 잠시 움직이지 않고 있습니다. 순서는 그대로 유지됩니다."}},
    {"why_capacity_lowered",
     {"The wait has grown: the organiser lets in fewer people at a time.",
      "한 번에 입장하는 인원이 줄어 대기 시간이 늘었습니다."}},
    {"why_rate_lowered",
     {"The wait has grown: the organiser lets people in more slowly.",
      "입장 속도가 늦춰져 대기 시간이 늘었습니다."}},
    {"why_more_ahead",
     {"The wait has grown: others have places ahead of yours.",
      "앞 순서에 들어온 분이 있어 대기 시간이 늘었습니다."}},
    {"why_slower",
     {"The wait has grown: people take longer than before.",
      "이용 시간이 길어져 대기 시간이 늘었습니다."}},
    {"range_unknown", {"Calculating…", "계산 중입니다"}},
    {"range_soon", {"less than a minute", "1분 이내"}},
    {"range_upto", {"up to {0}", "{0} 이내"}},
    {"range_about", {"about {0}", "약 {0}"}},
    {"range_between", {"about {0} to {1}", "약 {0}~{1}"}},
};

#define N_MESSAGES (sizeof(messages) / sizeof(messages[0]))

const struct tl_page_message *tl_page_messages(size_t *n)
{
    *n = N_MESSAGES;
    return messages;
}

const char *tl_page_message(const char *name, enum tl_language language)
{
    for (size_t i = 0; i < N_MESSAGES; i++) {
        if (strcmp(messages[i].name, name) == 0)
            return messages[i].in[language];
    }
    return "";
}

/* Writes as much of `more` at offset `at` as fits, without splitting a UTF-8 character. Returns the
 * new end of the text. */
static size_t append(char *text, size_t size, size_t at, const char *more, size_t length)
{
    size_t space = size - at - 1;
    if (length > space) {
        length = space;
        while (length > 0 && ((unsigned char)more[length] & 0xC0) == 0x80)
            length--;
    }
    memcpy(text + at, more, length);
    text[at + length] = '\0';
    return at + length;
}

void tl_page_message_format(const char *name, enum tl_language language, const char *first,
                            const char *second, char *text, size_t size)
{
    const char *pattern = tl_page_message(name, language);
    size_t at = append(text, size, 0, "", 0);
    while (*pattern != '\0') {
        bool is_first = strncmp(pattern, "{0}", 3) == 0;
        if (is_first || (second != NULL && strncmp(pattern, "{1}", 3) == 0)) {
            const char *value = is_first ? first : second;
            at = append(text, size, at, value, strlen(value));
            pattern += 3;
        } else {
            size_t plain = strcspn(pattern + 1, "{") + 1;
            at = append(text, size, at, pattern, plain);
            pattern += plain;
        }
    }
}

void tl_write_number(uint64_t number, char *text, size_t size)
{
    char digits[24];
    int n = snprintf(digits, sizeof(digits), "%" PRIu64, number);
    size_t at = append(text, size, 0, "", 0);
    for (int i = 0; i < n; i++) {
        if (i > 0 && (n - i) % 3 == 0)
            at = append(text, size, at, ",", 1);
        at = append(text, size, at, digits + i, 1);
    }
}

/* ---- durations ---- */

struct unit {
    int64_t seconds;
    const char *one, *many;
};

static const struct unit units[] = {
    {86400, "day", "days"},
    {3600, "hour", "hours"},
    {60, "minute", "minutes"},
    {1, "second", "seconds"},
};

#define N_UNITS (sizeof(units) / sizeof(units[0]))

static void write_amount(int64_t amount, const struct unit *unit, enum tl_language language,
                         char *text, size_t size)
{
    char number[32] = "";
    tl_write_number((uint64_t)amount, number, sizeof(number));
    tl_page_message_format(amount == 1 ? unit->one : unit->many, language, number, NULL, text,
                           size);
}

void tl_write_duration(int64_t seconds, enum tl_language language, char *text, size_t size)
{
    if (seconds < 0)
        seconds = 0;
    size_t i = 0;
    while (i + 1 < N_UNITS && seconds < units[i].seconds)
        i++;
    char part[TL_PAGE_TEXT_MAX] = "";
    write_amount(seconds / units[i].seconds, &units[i], language, part, sizeof(part));
    size_t at = append(text, size, 0, part, strlen(part));
    seconds %= units[i].seconds;
    if (i + 1 == N_UNITS || seconds < units[i + 1].seconds)
        return;
    write_amount(seconds / units[i + 1].seconds, &units[i + 1], language, part, sizeof(part));
    at = append(text, size, at, " ", 1);
    append(text, size, at, part, strlen(part));
}

static int64_t step_minutes(int64_t minutes)
{
    if (minutes <= 10)
        return 1;
    if (minutes <= 60)
        return 5;
    if (minutes <= 180)
        return 10;
    return minutes <= 720 ? 30 : 60;
}

#define SECONDS_MAX ((int64_t)1000 * 86400) /* longer estimates are cut to this */

void tl_write_range(int64_t low_s, int64_t high_s, enum tl_language language, char *text,
                    size_t size)
{
    char from[TL_PAGE_TEXT_MAX] = "";
    char to[TL_PAGE_TEXT_MAX] = "";
    high_s = high_s < 0 ? 0 : high_s > SECONDS_MAX ? SECONDS_MAX : high_s;
    low_s = low_s < 0 ? 0 : low_s > high_s ? high_s : low_s;
    int64_t high = (high_s + 59) / 60;
    int64_t step = step_minutes(high);
    high = (high + step - 1) / step * step;
    int64_t low = low_s / 60 / step * step;
    if (high <= 1 && low == 0) {
        tl_page_message_format("range_soon", language, "", NULL, text, size);
        return;
    }
    tl_write_duration(high * 60, language, to, sizeof(to));
    if (low == 0) {
        tl_page_message_format("range_upto", language, to, NULL, text, size);
    } else if (low == high) {
        tl_page_message_format("range_about", language, to, NULL, text, size);
    } else {
        /* "4 to 7 minutes", not "4 minutes to 7 minutes", where one unit is enough for both. */
        int64_t unit = high < 60 ? 1 : low % 60 == 0 && high % 60 == 0 && high < 1440 ? 60 : 0;
        if (unit > 0)
            tl_write_number((uint64_t)(low / unit), from, sizeof(from));
        else
            tl_write_duration(low * 60, language, from, sizeof(from));
        tl_page_message_format("range_between", language, from, to, text, size);
    }
}

void tl_write_time(int64_t unix_ms, enum tl_language language, char *text, size_t size)
{
    static const char *const months[12] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                           "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
    time_t seconds = (time_t)(unix_ms / 1000);
    struct tm tm;
    append(text, size, 0, "", 0);
    if (unix_ms < 0 || gmtime_r(&seconds, &tm) == NULL)
        return;
    if (language == TL_LANGUAGE_KO)
        snprintf(text, size, "%d년 %d월 %d일 %02d:%02d UTC", tm.tm_year + 1900, tm.tm_mon + 1,
                 tm.tm_mday, tm.tm_hour, tm.tm_min);
    else
        snprintf(text, size, "%d %s %d, %02d:%02d UTC", tm.tm_mday, months[tm.tm_mon],
                 tm.tm_year + 1900, tm.tm_hour, tm.tm_min);
}
