/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "worker/api/return_to.h"
#include "worker/page/page_address.h"

/* Does a parameter of this name belong to the page, and not to an address before it? */
static bool is_own(const char *name)
{
    static const char *const own[] = {"return", "lang",     "ticket",  "invite",
                                      "from",   "solution", "cookies", NULL};
    for (size_t i = 0; own[i] != NULL; i++) {
        if (strcmp(name, own[i]) == 0)
            return true;
    }
    return false;
}

struct gathering {
    struct tl_return_to *result;
    bool begun;
    bool cut; /* the address has a query, whose rest may follow as parameters of ours */
    bool valid;
};

static void gather(void *context, const char *name, const char *value)
{
    struct gathering *self = context;
    char *address = self->result->address;
    if (!self->begun && strcmp(name, "return") == 0) {
        self->begun = true;
        self->valid = value != NULL && tl_address_append(address, value, false);
        self->cut = strchr(address, '?') != NULL && strchr(address, '#') == NULL;
    } else if (self->begun && self->cut && self->valid && !is_own(name)) {
        self->valid =
            tl_address_append(address, "&", false) && tl_address_append(address, name, true) &&
            (value == NULL ||
             (tl_address_append(address, "=", false) && tl_address_append(address, value, true)));
    }
}

void tl_return_to_read(const struct tl_worker *worker, const struct tl_request *request,
                       const char *target_url, struct tl_return_to *result)
{
    struct gathering gathering = {.result = result};
    result->address[0] = '\0';
    result->refused = NULL;
    tl_request_each_query(request, gather, &gathering);
    if (!gathering.begun)
        return;
    if (!gathering.valid || !tl_address_valid(result->address))
        result->refused = "not an absolute address of http or https, or too long";
    else if (!tl_return_address_allowed(result->address, target_url,
                                        worker->config->page.return_urls))
        result->refused = "its origin is neither that of target_url nor in page.return_urls";
    if (result->refused != NULL)
        result->address[0] = '\0';
}
