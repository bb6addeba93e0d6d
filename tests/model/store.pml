/* How a join becomes a place, and what happens to it when programs crash and the store loses its tail.
 *
 * The store: the ingest stream with its consumer group, the dispatchers' lease and fence, the line, the events stream.
 * Each d_step is one script, or one command of Redis: nothing comes between.
 * Two dispatchers apply the stream; either may crash, or be overtaken while it sleeps. Two workers join one visitor
 * each and tell them their place. A worker repeats a batch whose answer was lost; the first copy may arrive late.
 * Once, at any moment, the store may return to what it was at any earlier moment.
 *
 * One simplification makes the model stricter than Redis: after a loss the streams give the same ids again. In Redis
 * ids follow the clock, so this takes a clock that was set back.
 *
 * tests/model/run verifies it. Options (spin -DNAME) take something away; run shows which of them make it fail:
 *   NO_FENCE         apply does not compare the fence
 *   NO_FENCE_GAP     a new incarnation leaves the fence as it was found
 *   NO_SEQ_GAP       a new incarnation leaves seq as it was found
 *   NO_REBUILD       readers do not compare the incarnation, and the event's number does not jump
 *   NO_BATCH_MEMORY  apply does not remember the last batch of a worker
 *   ACK_FIRST        an entry is acknowledged in one step and applied in the next
 *   NO_ORDER         apply accepts an entry while an older one is pending
 *   NO_LOSS          the store keeps all it had
 * and with fewer states, but not fewer faults, with
 *   ALWAYS_LOOK      dispatchers look for pending entries before each read, not only when there is a reason
 */
#define WORKERS 2     /* worker w serves visitor w */
#ifndef DISPATCHERS
#define DISPATCHERS 2
#endif
#ifndef LEAVERS
#define LEAVERS 1     /* the first visitor may leave */
#endif
#define ENTRIES 9     /* of the ingest stream, from 1 on */
#define EVENTS 12
#define GAP 12        /* more than seq, fence or event can reach before the loss */
#ifndef CRASHES
#define CRASHES 1     /* of dispatchers, together */
#endif
#ifndef OVERTAKES
#define OVERTAKES 1   /* leases taken from a dispatcher that is alive */
#endif
#ifndef REPEATS
#define REPEATS 1     /* answers lost, together */
#endif

#define NONE 0
#define JOIN 1
#define LEAVE 2
#define RESTORE 3

typedef Command { byte worker, batch, kind, place };
typedef Event { byte number, worker, batch, place };

/* ---- the store ---- */

Command ingest[ENTRIES];
byte n_ingest = 0;            /* entries 1 to n_ingest exist */
byte delivered = 0;           /* the group's last delivered entry */
short pending = 0;            /* delivered and not acknowledged, as bits */
byte holder = 0, fence = 0;   /* of the lease; holder 0: none */
byte seq = 0, event = 0;
byte incarnation = 0;
bit seen_store = 0;           /* state.store: the store that the state was last written in */
byte line[WORKERS];           /* the place of each visitor; 0: none */
byte last_batch[WORKERS];
Event events[EVENTS];
byte n_events = 0;

bit store = 0;                /* the replication id of the server */

/* ---- what the store had when it was last safe on disk ---- */

byte s_n_ingest, s_delivered, s_holder, s_fence, s_seq, s_event, s_n_events, s_line[WORKERS], s_last_batch[WORKERS];
short s_pending;

/* ---- what was promised; no program reads this ---- */

byte told[WORKERS];           /* the place that this visitor was told; it never changes */
byte floor_of[WORKERS];       /* the highest place told to anyone before this visitor asked */
byte highest_told = 0;
byte applied_to = 0, s_applied_to = 0; /* the last entry that was applied */
bit left[WORKERS];            /* was told that they left */
bit saved = 0, lost = 0;
bit dead[3];

/* ---- the rest of the machine ---- */

byte at[WORKERS];             /* the next event that each worker reads */
Command late;                 /* on the way over a broken connection; kind NONE: nothing */
byte repeats = REPEATS, overtakes = OVERTAKES, crashes = CRASHES;

inline append_event(number_, worker_, batch_, place_) {
    events[n_events].number = number_;
    events[n_events].worker = worker_;
    events[n_events].batch = batch_;
    events[n_events].place = place_;
    n_events++;
}

/* What each writing script does first: on another store than the state knows, an incarnation begins. */
inline open_state() {
    if
    :: store != seen_store ->
        seen_store = store;
        incarnation++;
#ifndef NO_SEQ_GAP
        seq = seq + GAP;
#endif
#ifndef NO_FENCE_GAP
        fence = fence + GAP;
#endif
#ifndef NO_REBUILD
        event = event + GAP;
        append_event(event, 255, 0, 0);
#endif
    :: else
    fi
}

inline xadd(worker_, batch_, kind_, place_) {
    n_ingest++;
    assert(n_ingest < ENTRIES);
    ingest[n_ingest].worker = worker_;
    ingest[n_ingest].batch = batch_;
    ingest[n_ingest].kind = kind_;
    ingest[n_ingest].place = place_;
}

/* What applying a command does to the line. */
inline change(command_) {
    if
#ifndef NO_BATCH_MEMORY
    :: command_.batch <= last_batch[command_.worker] -> skip
#endif
    :: else ->
        last_batch[command_.worker] = command_.batch;
        if
        :: command_.kind == JOIN && line[command_.worker] == 0 ->
            seq++;
            line[command_.worker] = seq
        :: command_.kind == LEAVE && line[command_.worker] == command_.place ->
            line[command_.worker] = 0
        :: command_.kind == RESTORE && (line[command_.worker] == 0 || line[command_.worker] > command_.place) ->
            /* an older place wins over one that the same visitor took since, or that a saved JOIN gave again */
            assert(line[1 - command_.worker] != command_.place); /* no place has two holders */
            line[command_.worker] = command_.place
        :: else
        fi;
        event++;
        append_event(event, command_.worker, command_.batch, line[command_.worker])
    fi
}

/* Keeps the number of states small: what nothing will read any more is cleared. A loss brings back what was saved. */
inline clear_entry(id_) {
    if
    :: saved == lost ->
        ingest[id_].worker = 0; ingest[id_].batch = 0; ingest[id_].kind = 0; ingest[id_].place = 0
    :: else
    fi
}

inline clear_event(at_) {
    events[at_].number = 0; events[at_].worker = 0; events[at_].batch = 0; events[at_].place = 0
}

/* ---- a dispatcher ---- */

#define MAY_TAKE(me) (holder == 0 || holder == me || dead[holder] || overtakes > 0)
#define FENCE_OK (fence == my_fence)
#ifdef NO_FENCE
#undef FENCE_OK
#define FENCE_OK (true)
#endif
#ifdef NO_ORDER
#define ORDER_OK (true)
#else
#define ORDER_OK ((pending & ((1 << id) - 1)) == 0)
#endif

#ifdef ALWAYS_LOOK
#define LOOK (pending != 0)
#define TO_READ (pending != 0 || delivered < n_ingest)
#else
#define LOOK (look)
#define TO_READ (look -> pending != 0 : delivered < n_ingest)
#endif

inline forget() {
    my_fence = 0;
    look = 0;
    forget_entry()
}

inline forget_entry() {
    id = 0;
    entry.worker = 0; entry.batch = 0; entry.kind = 0; entry.place = 0
}

proctype Dispatcher(byte me) {
    byte my_fence = 0; /* 0: no lease */
    bit look = 0;      /* for entries that were delivered and not applied, before it reads new ones */
    byte id = 0;       /* the entry that was read */
    Command entry;     /* its content, as it was when it was read */

end:
    do
    :: d_step { my_fence == 0 && MAY_TAKE(me) ->
        if
        :: holder == 0 || holder == me || dead[holder]
        :: else -> overtakes--
        fi;
        open_state();
        fence++;
        holder = me;
        dead[me] = 0;
        look = 1;
        my_fence = fence }

#ifndef ALWAYS_LOOK
    :: d_step { my_fence != 0 && id == 0 && look && pending == 0 -> look = 0 }
    :: d_step { my_fence != 0 && id == 0 && !look && pending != 0 -> look = 1 } /* now and then in any case */
#endif

    /* what an earlier holder left pending comes first */
    :: d_step { my_fence != 0 && id == 0 && TO_READ ->
        if
        :: LOOK ->
            do
            :: (pending & (1 << id)) == 0 -> id++
            :: else -> break
            od
        :: else ->
            delivered++;
            id = delivered;
            pending = pending | (1 << id)
        fi;
        entry.worker = ingest[id].worker;
        entry.batch = ingest[id].batch;
        entry.kind = ingest[id].kind;
        entry.place = ingest[id].place }

    :: id != 0 ->
        if
        :: d_step { crashes > 0 -> crashes--; dead[me] = 1; forget() }
#ifndef ACK_FIRST
        :: d_step {
            open_state();
            if
            :: !FENCE_OK -> forget()
            :: FENCE_OK && (pending & (1 << id)) != 0 && ORDER_OK ->
                pending = pending & ~(1 << id);
                assert(id > applied_to); /* in the order of the stream */
                applied_to = id;
                change(entry);
                clear_entry(id)
            :: else -> look = 1
            fi;
            forget_entry() }
#else
        :: d_step {
            open_state();
            if
            :: FENCE_OK && (pending & (1 << id)) != 0 && ORDER_OK ->
                pending = pending & ~(1 << id)
            :: else -> forget()
            fi };
            if
            :: id == 0
            :: d_step { id != 0 && crashes > 0 -> crashes--; dead[me] = 1; forget() }
            :: d_step { id != 0 -> change(entry); clear_entry(id); forget_entry() }
            fi
#endif
        fi
    od
}

/* ---- a worker ---- */

inline tell(place_) {
    assert(place_ != 0);
    assert(told[1 - w] != place_);                /* a place is told to one visitor, ever */
    assert(told[w] == 0 || told[w] == place_);    /* and a visitor has one place */
    assert(told[w] != 0 || place_ > floor_of[w]); /* in the order of arrival, as visitors can tell */
    told[w] = place_;
    if
    :: place_ > highest_told -> highest_told = place_
    :: else
    fi
}

/* Moves on in the stream; the last reader of an event clears it. */
inline pass_event() {
    if
    :: at[1 - w] > at[w] -> clear_event(at[w])
    :: else
    fi;
    at[w]++
}

/* Reads the snapshot. What is in the air ends as unknown and is asked again; a place that is gone is restored. */
inline rebuild() {
    my_incarnation = incarnation;
    my_event = event;
    do
    :: at[w] < n_events -> pass_event()
    :: else -> break
    od;
    at[w] = n_events; /* it may have gone back */
    if
    :: open != NONE -> to_send = 1; batch++
    :: open == NONE && told[w] != 0 && !left[w] && line[w] != told[w] -> open = RESTORE; to_send = 1; batch++
    :: else
    fi
}

inline outcome(place_) {
    if
    :: open == LEAVE -> left[w] = 1
    :: else -> tell(place_)
    fi;
    open = NONE
}

#ifdef NO_REBUILD
#define OTHER_STORE (false)
#else
#define OTHER_STORE (incarnation != my_incarnation)
#endif

proctype Worker(byte w) {
    byte batch = 1, open = JOIN, my_event = 0, my_incarnation = 0;
    bit to_send = 1, leaves;

    if
    :: leaves = 0
    :: w < LEAVERS -> leaves = 1
    fi;
    floor_of[w] = highest_told;

end:
    do
    :: to_send ->
        if
        :: d_step { xadd(w, batch, open, told[w]); to_send = 0 }
        :: d_step { repeats > 0 -> repeats--; xadd(w, batch, open, told[w]) }
        :: d_step { repeats > 0 && late.kind == NONE -> repeats--;
            late.worker = w; late.batch = batch; late.kind = open; late.place = told[w] }
        fi
    :: d_step { !to_send && (OTHER_STORE || at[w] < n_events) ->
        if
        :: OTHER_STORE -> rebuild()
        :: !OTHER_STORE && events[at[w]].number == my_event + 1 ->
            my_event++;
            if
            :: open != NONE && events[at[w]].worker == w && events[at[w]].batch == batch -> outcome(events[at[w]].place)
            :: else
            fi;
            pass_event()
        :: !OTHER_STORE && events[at[w]].number <= my_event -> pass_event() /* seen before */
        :: !OTHER_STORE && events[at[w]].number > my_event + 1 -> rebuild()
        fi }
    :: d_step { !to_send && leaves && open == NONE && told[w] != 0 && !left[w] ->
        leaves = 0; open = LEAVE; batch++; to_send = 1 }
    od
}

/* ---- the world ---- */

proctype Late() {
end:
    do
    :: d_step { late.kind != NONE -> xadd(late.worker, late.batch, late.kind, late.place);
        late.kind = NONE; late.worker = 0; late.batch = 0; late.place = 0 }
    od
}

#ifndef NO_LOSS
proctype Loss() {
    if
    :: true -> goto end /* no loss */
    :: d_step { true ->
        saved = 1; s_applied_to = applied_to; s_n_ingest = n_ingest; s_delivered = delivered; s_pending = pending; s_holder = holder; s_fence = fence;
        s_seq = seq; s_event = event; s_n_events = n_events;
        s_line[0] = line[0]; s_line[1] = line[1]; s_last_batch[0] = last_batch[0]; s_last_batch[1] = last_batch[1] }
    fi;
    d_step {
        lost = 1; /* before the clearing */
        store = 1;
        do
        :: n_ingest > s_n_ingest ->
            clear_entry(n_ingest);
            n_ingest--
        :: else -> break
        od;
        do
        :: n_events > s_n_events ->
            n_events--;
            clear_event(n_events)
        :: else -> break
        od;
        applied_to = s_applied_to; delivered = s_delivered; pending = s_pending; holder = s_holder; fence = s_fence; seq = s_seq; event = s_event;
        line[0] = s_line[0]; line[1] = s_line[1]; last_batch[0] = s_last_batch[0]; last_batch[1] = s_last_batch[1];
        late.kind = NONE; late.worker = 0; late.batch = 0; late.place = 0; /* its connection broke for good */
        s_applied_to = 0; s_n_ingest = 0; s_delivered = 0; s_pending = 0; s_holder = 0; s_fence = 0; s_seq = 0; s_event = 0; s_n_events = 0;
        s_line[0] = 0; s_line[1] = 0; s_last_batch[0] = 0; s_last_batch[1] = 0
    };
    d_step { true -> open_state() }; /* some script writes in the end: presence alone does */
end:
    skip
}
#endif

/* When nothing more can happen: every join was told, and those told stand where they were told, but for who left. */
proctype Judge() {
    byte v;
    timeout ->
    d_step {
        assert(pending == 0 && delivered == n_ingest);
        for (v : 0 .. WORKERS - 1) {
            assert(told[v] != 0);
            if
            :: left[v] -> assert(lost || line[v] == 0)
            :: else -> assert(line[v] == told[v])
            fi
        }
    }
}

init {
    atomic {
        run Dispatcher(1);
#if DISPATCHERS > 1
        run Dispatcher(2);
#endif
        run Worker(0); run Worker(1);
        run Late();
#ifndef NO_LOSS
        run Loss();
#endif
        run Judge()
    }
}
