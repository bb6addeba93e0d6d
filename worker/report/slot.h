/* What a worker process reports to its parent in shared memory, beside its metrics. */
#ifndef TL_SLOT_H
#define TL_SLOT_H

#include <stdatomic.h>
#include <stdint.h>

enum tl_readiness {
    TL_NOT_STARTED,
    TL_STORE_DOWN,
    TL_LINES_LOADING,
    TL_DRAINING,
    TL_READY,
};

struct tl_slot {
    _Atomic int64_t beats; /* grows with every tick of its loop */
    _Atomic int readiness; /* enum tl_readiness */
};

/* The reason for /readyz and the service manager. */
const char *tl_readiness_text(enum tl_readiness readiness);

#endif
