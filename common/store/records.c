/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/store/records.h"

#define EXACT_MAX (UINT64_C(1) << 53) /* a double is exact up to here */
#define PLACE_END ((uint64_t)TL_LANES_MAX << TL_PLACE_SEQ_BITS)

enum { REASON_BITS = 3 };

bool tl_record_number(const char **text, char stop, uint64_t *number)
{
    char *end;
    errno = 0;
    uint64_t found = strtoull(*text, &end, 10);
    if (**text < '0' || **text > '9' || errno != 0 || *end != stop || found > EXACT_MAX)
        return false;
    *number = found;
    *text = stop == '\0' ? end : end + 1;
    return true;
}

bool tl_record_score(const char *text, uint64_t *score)
{
    char *end;
    const char *at = text;
    if (tl_record_number(&at, '\0', score))
        return true;
    if (*text < '0' || *text > '9' || text[strspn(text, "0123456789.e+")] != '\0')
        return false;
    double value = strtod(text, &end);
    if (*end != '\0' || value > (double)EXACT_MAX || value != (double)(uint64_t)value)
        return false;
    *score = (uint64_t)value;
    return true;
}

bool tl_record_place(const char *text, tl_place *place)
{
    uint64_t score;
    if (!tl_record_score(text, &score) || score == 0 || score >= PLACE_END)
        return false;
    *place = score;
    return true;
}

bool tl_record_session(const char *text, struct tl_session_record *session)
{
    uint64_t place, admitted_ms, claimed;
    if (!tl_record_number(&text, ':', &place) || place == 0 || place >= PLACE_END ||
        !tl_record_number(&text, ':', &admitted_ms) || !tl_record_number(&text, '\0', &claimed) ||
        claimed > 1)
        return false;
    *session = (struct tl_session_record){
        .place = place, .admitted_ms = (int64_t)admitted_ms, .claimed = claimed == 1};
    return true;
}

bool tl_record_end(const char *text, struct tl_end_record *end)
{
    uint64_t score;
    if (!tl_record_score(text, &score))
        return false;
    uint64_t reason = score & ((1U << REASON_BITS) - 1);
    if (reason < TL_REASON_COMPLETED || reason > TL_REASON_REMOVED)
        return false;
    *end = (struct tl_end_record){.ended_ms = (int64_t)(score >> REASON_BITS),
                                  .reason = (enum tl_reason)reason};
    return true;
}
