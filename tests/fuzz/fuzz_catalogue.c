/* SPDX-License-Identifier: Apache-2.0 */
/* The input is a file of texts of the pages. It is refused with a sentence that begins with the
 * file's name, or each text of the language holds no more values than English has. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "worker/page/catalogue.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char english[] = "language: {code: en, name: English}\n"
                              "texts:\n"
                              "  hello: Hello\n"
                              "  place: \"Place {0} of {1}\"\n"
                              "  minute: {one: \"{0} minute\", other: \"{0} minutes\"}\n";

static void require(bool condition)
{
    if (!condition)
        abort();
}

static void check(const struct tl_catalogue *catalogue)
{
    int hello = tl_catalogue_find(catalogue, "hello", 5);
    int place = tl_catalogue_find(catalogue, "place", 5);
    int minute = tl_catalogue_find(catalogue, "minute", 6);
    require(hello == 0 && place == 1 && minute == 2);
    require(strchr(tl_catalogue_text(catalogue, hello), '{') == NULL);
    require(strstr(tl_catalogue_text(catalogue, place), "{0}") != NULL);
    require(strstr(tl_catalogue_text(catalogue, place), "{1}") != NULL);
    for (uint64_t number = 0; number < 130; number++)
        require(strchr(tl_catalogue_form(catalogue, minute, number), '|') == NULL);
    require(catalogue->group_from >= 4 && catalogue->code[0] != '\0');
    require(strstr(catalogue->date, "{year}") != NULL);
    for (unsigned month = 0; month < 12; month++)
        require(strlen(catalogue->months[month]) < sizeof(catalogue->months[month]));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct tl_error err = {0};
    const char *code;
    struct tl_catalogue *source = tl_catalogue_new(NULL, NULL);
    struct tl_yaml *root = tl_catalogue_parse("en.yaml", english, sizeof(english) - 1, &code, NULL);
    require(source != NULL && root != NULL && tl_catalogue_read(source, "en.yaml", root, NULL));
    tl_yaml_free(&root);
    struct tl_catalogue *catalogue = tl_catalogue_new(source, NULL);
    require(catalogue != NULL);
    root = tl_catalogue_parse("fuzz.yaml", data, size, &code, &err);
    if (root != NULL && tl_catalogue_read(catalogue, "fuzz.yaml", root, &err)) {
        require(strcmp(code, catalogue->code) == 0);
        check(catalogue);
    } else {
        require(err.kind == TL_ERR_INVALID && strncmp(err.text, "fuzz.yaml:", 10) == 0);
    }
    tl_yaml_free(&root);
    tl_catalogue_free(&catalogue);
    tl_catalogue_free(&source);
    return 0;
}
