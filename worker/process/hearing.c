/* SPDX-License-Identifier: Apache-2.0 */
#include <poll.h>
#include <stddef.h>

#include "worker/process/hearing.h"

enum {
    LOOKS = TL_HEARING_LOST_MS / 500,
    BEATS = 20, /* a loop that hardly turns is slow or stuck, not deaf */
};

bool tl_hearing_waits(int listen_fd)
{
    struct pollfd socket = {.fd = listen_fd, .events = POLLIN};
    return poll(&socket, 1, 0) == 1 && (socket.revents & POLLIN) != 0;
}

bool tl_hearing_lost(struct tl_hearing *hearing, bool waiting, int64_t accepted, int64_t beats)
{
    if (!waiting || hearing->looks == 0 || accepted != hearing->accepted) {
        *hearing =
            (struct tl_hearing){.accepted = accepted, .beats = beats, .looks = waiting ? 1 : 0};
        return false;
    }
    hearing->looks++;
    return hearing->looks > LOOKS && beats - hearing->beats >= BEATS;
}
