/* How answers look under /q/: the waiting page. */
#ifndef TL_PAGE_RENDERER_H
#define TL_PAGE_RENDERER_H

#include "worker/http/renderer.h"

extern const struct tl_renderer tl_page_renderer; /* context is the api */

#endif
