-- SPDX-License-Identifier: Apache-2.0
-- The record of queues: what happened to each visitor. docs/operators/archive.md explains the tables.

CREATE TABLE queues (
    queue_id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name text NOT NULL UNIQUE
);

-- A queue that is created again, or whose data was lost, is another generation, with places of its own.
CREATE TABLE queue_generations (
    generation_id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    queue_id int NOT NULL REFERENCES queues,
    generation bigint NOT NULL,         -- Unix time of its creation, in microseconds
    event bigint NOT NULL DEFAULT 0,    -- everything up to this event was written; what is told again is skipped
    told_from bigint NOT NULL DEFAULT 0, -- the event from which all who wait or are active were told again last
    told_whole boolean NOT NULL DEFAULT true, -- false: that is still going on
    told_why text,                      -- the reason in queue_gaps
    last_at timestamptz,                -- of that event
    deleted_at timestamptz,             -- by an operator
    UNIQUE (queue_id, generation)
);

CREATE TYPE entry_status AS ENUM ('waiting', 'active', 'completed', 'left', 'expired', 'unclaimed', 'absent', 'removed',
    'deleted', 'unknown');

-- One row for each place that was given. Times are those of the clock of Redis; NULL: not known, or not yet.
CREATE TABLE queue_entries (
    generation_id int NOT NULL,
    seq bigint NOT NULL,       -- together with the lane it is the place
    lane smallint NOT NULL,
    lane_before smallint,      -- as was told before the last move
    status entry_status,
    serial bigint,             -- how often the place was handed over to another device
    joined_at timestamptz,
    restored_at timestamptz,   -- the visitor came back to the place, which Redis had lost
    admitted_at timestamptz,
    claimed_at timestamptz,    -- when the visitor came, or the archive first knew it
    deadline timestamptz,      -- of the session, or of its claim
    ended_at timestamptz,
    event bigint NOT NULL,     -- the last one that concerns the place
    joined_seq bigint,         -- before the draw
    visitor text,              -- NULL: forgotten
    leaf bigint,               -- of the trail, by which the place was given last
    PRIMARY KEY (generation_id, seq)
) PARTITION BY LIST (generation_id);
CREATE INDEX queue_entries_visitor ON queue_entries (visitor);
-- By the ticket from before the draw.
CREATE INDEX queue_entries_joined_seq ON queue_entries (joined_seq) WHERE joined_seq IS NOT NULL;

-- Where the record has a gap, or may have one. After it all who wait or are active were told again.
CREATE TABLE queue_gaps (
    generation_id int NOT NULL REFERENCES queue_generations ON DELETE CASCADE,
    event bigint NOT NULL,
    reason text NOT NULL,
    since timestamptz NOT NULL,
    until timestamptz NOT NULL,
    missing bigint NOT NULL, -- notes that were not written; 0: none, or it cannot be known
    PRIMARY KEY (generation_id, event)
);

-- The trail of a generation: a log of everything that was archived, under one hash (common/archive/tlog.h).
CREATE TABLE trails (
    generation_id int PRIMARY KEY REFERENCES queue_generations ON DELETE CASCADE,
    size bigint NOT NULL,     -- leaves
    checkpoint text NOT NULL  -- of this size, signed
);

-- Its tiles: a row for each that is full, and those that are not in pieces, a row for each transaction. A sweep drops them
-- before the generation.
CREATE TABLE trail_tiles (
    generation_id int NOT NULL,
    level smallint NOT NULL,  -- -1: the leaves themselves
    first smallint NOT NULL,  -- of a piece: where in the tile it begins
    n bigint NOT NULL,
    bytes bytea NOT NULL,
    PRIMARY KEY (generation_id, level, n, first)
);

-- The keys of the archivers, one row, written by the first of them. One with other keys writes nothing. To change a key on
-- purpose, delete the row.
CREATE TABLE archive_keys (
    one boolean PRIMARY KEY DEFAULT true CHECK (one),
    archive_key text NOT NULL, -- a hash of it
    trail_key text NOT NULL    -- by which the trail is verified, and in whose name
);

-- Sales: a generation that Redis lost, and the one that came within an hour or was brought back, are one. sale: the number
-- of its first generation. lost: what was open in it went on in the next one, if at all.
CREATE VIEW queue_sales AS
SELECT queue_id, generation_id, generation, last_at,
    max(generation) FILTER (WHERE begins) OVER (PARTITION BY queue_id ORDER BY generation) AS sale,
    deleted_at IS NULL AND lead(generation) OVER (PARTITION BY queue_id ORDER BY generation) IS NOT NULL AS lost
FROM (SELECT *, lag(deleted_at) OVER before IS NOT NULL
        OR coalesce(lag(last_at) OVER before, '-infinity') < to_timestamp(generation / 1000000.0) - interval '1 hour'
            AND NOT EXISTS (SELECT FROM queue_gaps AS q WHERE q.generation_id = g.generation_id AND reason = 'lost') AS begins
    FROM queue_generations AS g WINDOW before AS (PARTITION BY queue_id ORDER BY generation)) AS every;

-- Who changed what (the record of changes). before, after: the members that changed.
CREATE TABLE queue_changes (
    queue_id int NOT NULL REFERENCES queues,
    at timestamptz NOT NULL,
    entry_ms bigint NOT NULL,
    entry_nth bigint NOT NULL, -- with entry_ms the id of the entry in Redis
    who text NOT NULL,
    source text NOT NULL,
    what text NOT NULL,
    before jsonb NOT NULL,
    after jsonb NOT NULL,
    PRIMARY KEY (queue_id, entry_ms, entry_nth)
);

-- The numbers of a queue at these times, a minute apart, or ten while nothing changes.
CREATE TABLE queue_stats (
    queue_id int NOT NULL REFERENCES queues,
    at timestamptz NOT NULL, -- the id of the point in Redis
    mode text NOT NULL,
    waiting bigint NOT NULL,
    active bigint NOT NULL,
    capacity bigint NOT NULL, -- in force; 0: none
    totals jsonb NOT NULL,    -- since the queue was created, also of the waits that visitors were told
    PRIMARY KEY (queue_id, at)
);

-- Where Redis and these tables differ, at most 100 for each generation, one for each place. `told`: the record tells of a
-- place what cannot be, as after a change by hand; it stays until somebody deletes it. `waiting` and `active` were found by
-- the comparison, which does so again, or removes them; so was `ended`, of numbers of a kind, whose seq is minus its REASON.
CREATE TABLE queue_differences (
    generation_id int NOT NULL REFERENCES queue_generations ON DELETE CASCADE,
    seq bigint NOT NULL,
    source text NOT NULL,
    event bigint NOT NULL,      -- as of which Redis had it so
    found_at timestamptz NOT NULL DEFAULT now(),
    in_redis text, redis_visitor text,     -- what is there at this place; NULL: nobody
    in_archive text, archive_visitor text, -- the same here
    PRIMARY KEY (generation_id, seq)
);

CREATE FUNCTION keep_few() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (SELECT FROM queue_differences AS d WHERE d.generation_id = NEW.generation_id AND d.seq = NEW.seq)
        OR (SELECT count(*) FROM queue_differences AS d WHERE d.generation_id = NEW.generation_id) >= 100 THEN
        RETURN NULL;
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER keep_few BEFORE INSERT ON queue_differences FOR EACH ROW EXECUTE FUNCTION keep_few();

-- What is told of a place cannot be: it is another visitor's, or in another lane than before, though no move was told; or
-- it is new, and nobody entered the line there. All but the first can be where not all are told yet.
CREATE FUNCTION told() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    is_new boolean := TG_OP = 'INSERT';
BEGIN
    IF NOT is_new AND OLD.visitor <> NEW.visitor OR (is_new OR NEW.restored_at IS NOT DISTINCT FROM OLD.restored_at) AND
        (SELECT told_whole OR told_why = 'corrected' FROM queue_generations WHERE generation_id = NEW.generation_id) THEN
        INSERT INTO queue_differences VALUES (NEW.generation_id, NEW.seq, 'told', NEW.event, now(),
            coalesce(NEW.status::text, 'at a place') || ' in lane ' || NEW.lane_before || ', as was told', NEW.visitor,
            CASE WHEN NOT is_new THEN coalesce(OLD.status::text, 'at a place') || ' in lane ' || OLD.lane END,
            CASE WHEN NOT is_new THEN OLD.visitor END);
    END IF;
    IF NOT is_new THEN
        NEW.visitor := OLD.visitor;
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER told_again BEFORE UPDATE ON queue_entries FOR EACH ROW
    WHEN (NEW.event > OLD.event AND (OLD.visitor <> NEW.visitor OR OLD.lane <> NEW.lane_before)) EXECUTE FUNCTION told();
CREATE TRIGGER told_first AFTER INSERT ON queue_entries FOR EACH ROW
    WHEN (NEW.joined_at IS NULL AND NEW.restored_at IS NULL AND NEW.lane_before IS NOT NULL) EXECUTE FUNCTION told();

-- The rounds of the comparison: when the last one began, when that one began which was done last, and when an operator
-- asked for one.
CREATE TABLE queue_rounds (
    generation_id int PRIMARY KEY REFERENCES queue_generations ON DELETE CASCADE,
    began_at timestamptz NOT NULL DEFAULT '-infinity',
    done_at timestamptz NOT NULL DEFAULT '-infinity',
    asked_at timestamptz NOT NULL DEFAULT '-infinity'
);

-- A difference as a sentence.
CREATE FUNCTION difference_text(d queue_differences) RETURNS text LANGUAGE sql STABLE AS $$
    SELECT CASE WHEN d.seq < 0 THEN format('in Redis %s, in the archive %s', d.in_redis, d.in_archive)
        ELSE format('number %s: in Redis %s, in the archive %s', d.seq,
        CASE WHEN d.in_redis IS NULL THEN 'nobody'
            ELSE format('visitor "%s" %s', coalesce(d.redis_visitor, '(forgotten)'), d.in_redis) END,
        CASE WHEN d.in_archive IS NULL THEN 'nobody'
            ELSE format('visitor "%s" %s', coalesce(d.archive_visitor, '(forgotten)'), d.in_archive) END)
        || coalesce((SELECT format('; swapped with number %s', other.seq) FROM queue_differences AS other
            WHERE other.generation_id = d.generation_id AND other.redis_visitor = d.archive_visitor
            AND other.archive_visitor = d.redis_visitor AND other.seq <> d.seq LIMIT 1), '') END
$$;

-- Compares visitors of Redis, as of this event and in this state, with the entries that have not changed since: at their
-- seqs, and all others in this state from `past` on up to `last`. The caller knows that all up to the event was written.
-- A place that was drawn since has another seq. An entry with an event that was not written was altered by hand. Returns
-- sentences.
CREATE FUNCTION compare(generation int, state entry_status, as_of bigint, began bigint, past bigint, last bigint,
    seqs bigint[], lanes int[], visitors text[], deadlines bigint[]) RETURNS SETOF text LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM queue_differences AS d WHERE d.generation_id = generation AND d.source <> 'told'
        AND (d.source = state::text AND d.seq = ANY(seqs) OR d.seq > past AND d.seq <= last AND d.event < began);
    INSERT INTO queue_differences
        SELECT generation, coalesce(r.seq, q.seq), state, as_of, now(),
            state || ' in lane ' || r.lane || coalesce(' until ' || to_timestamp(r.deadline / 1000.0), ''), r.visitor,
            coalesce(q.status::text, 'at a place') || ' in lane ' || q.lane
                || coalesce(' until ' || CASE q.status WHEN 'active' THEN q.deadline END, ''), q.visitor
        FROM unnest(seqs, lanes, visitors, deadlines) AS r (seq, lane, visitor, deadline)
        FULL JOIN (SELECT * FROM queue_entries AS e WHERE e.generation_id = generation
            AND (e.seq = ANY(seqs) OR e.seq > past AND e.seq <= last AND e.status = state)) AS q USING (seq)
        WHERE q.seq IS NULL AND NOT EXISTS (SELECT FROM queue_entries AS e WHERE e.generation_id = generation
                AND e.visitor = r.visitor AND e.joined_seq = r.seq AND e.event > as_of)
            OR (q.event <= as_of OR q.event > (SELECT g.event FROM queue_generations AS g
                WHERE g.generation_id = compare.generation)) AND (r.seq IS NULL OR q.status IS DISTINCT FROM state
                OR q.visitor IS DISTINCT FROM r.visitor OR q.lane <> r.lane
                OR r.deadline IS NOT NULL AND r.deadline IS DISTINCT FROM (extract(epoch FROM q.deadline) * 1000)::bigint);
    RETURN QUERY SELECT difference_text(d) FROM queue_differences AS d
        WHERE d.generation_id = generation AND d.found_at = now() ORDER BY d.seq;
END $$;

-- Compares how many have ended after the event `counted`, by `since`, up to this event: of each kind, in the order of REASON.
-- One that was found before `counted` cannot be compared again, and stays. Returns sentences.
CREATE FUNCTION compare_ended(generation int, as_of bigint, counted bigint, since timestamptz, in_redis bigint[],
    in_archive bigint[]) RETURNS SETOF text LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM queue_differences AS d WHERE d.generation_id = generation AND d.source = 'ended' AND d.event > counted;
    INSERT INTO queue_differences (generation_id, seq, source, event, in_redis, in_archive)
        SELECT generation, -nth, 'ended', as_of, redis || ' places are ' || kind || ' since ' || since, archive
        FROM unnest('{completed,left,expired,unclaimed,absent,removed}'::text[], compare_ended.in_redis,
            compare_ended.in_archive) WITH ORDINALITY AS each (kind, redis, archive, nth) WHERE redis <> archive;
    RETURN QUERY SELECT difference_text(d) FROM queue_differences AS d
        WHERE d.generation_id = generation AND d.found_at = now() AND d.source = 'ended' ORDER BY d.seq DESC;
END $$;

-- How far the dropping of what is old has come: it begins again six hours after it was done last.
CREATE TABLE upkeep (
    swept_at timestamptz NOT NULL,              -- when it was done last
    generation_id int NOT NULL DEFAULT 0,       -- of the last entry that was looked at since
    seq bigint NOT NULL DEFAULT 0
);
INSERT INTO upkeep VALUES ('-infinity');

-- A generation, with its partition, which are made if they are missing.
CREATE FUNCTION open_generation(queue text, made bigint,
    OUT queue_id int, OUT generation_id int, OUT event bigint, OUT last_ms bigint) LANGUAGE plpgsql AS $$
BEGIN
    -- Looks first: a row that is written again is locked, by two archivers in either order with what they write of it.
    SELECT q.queue_id, g.generation_id, g.event, coalesce(floor(extract(epoch FROM g.last_at) * 1000), 0)
        INTO open_generation.queue_id, open_generation.generation_id, open_generation.event, open_generation.last_ms
        FROM queues AS q JOIN queue_generations AS g USING (queue_id) WHERE q.name = queue AND g.generation = made;
    IF FOUND THEN
        RETURN;
    END IF;
    INSERT INTO queues AS q (name) VALUES (queue) ON CONFLICT (name) DO UPDATE SET name = excluded.name
        RETURNING q.queue_id INTO open_generation.queue_id;
    INSERT INTO queue_generations AS g (queue_id, generation) VALUES (open_generation.queue_id, made)
        ON CONFLICT ON CONSTRAINT queue_generations_queue_id_generation_key DO UPDATE SET generation = excluded.generation
        RETURNING g.generation_id, g.event, coalesce(floor(extract(epoch FROM g.last_at) * 1000), 0)
        INTO open_generation.generation_id, open_generation.event, open_generation.last_ms;
    IF to_regclass('tellerline.queue_entries_' || generation_id) IS NULL THEN
        -- In two steps, which do not wait for who reads the table. Half of a page is left for updates: each place is called
        -- and ends, and a row that finds room beside itself needs no new entries of the indexes.
        EXECUTE format('CREATE TABLE queue_entries_%s (LIKE queue_entries INCLUDING ALL) WITH (fillfactor = 50)',
            generation_id);
        EXECUTE format('ALTER TABLE queue_entries ATTACH PARTITION queue_entries_%s FOR VALUES IN (%s)',
            generation_id, generation_id);
    END IF;
END $$;

-- Drops a portion of what is older than `kept`: a generation without later events as a whole, after the tiles of its trail,
-- which are large; or those of the next `most` entries that ended before. again: more follows; dropped: how many generations went. A portion is a transaction of its
-- own, so that a large archive is cleared without long locks, and one that fails undoes nothing else.
CREATE FUNCTION sweep(kept interval, most int, OUT dropped int, OUT again boolean) LANGUAGE plpgsql AS $$
DECLARE
    oldest timestamptz := now() - kept;
    from_here upkeep;
    last queue_entries;
    n int;
BEGIN
    dropped := 0;
    again := false;
    SELECT * INTO from_here FROM upkeep WHERE swept_at < now() - interval '6 hours' FOR UPDATE SKIP LOCKED;
    IF NOT FOUND THEN
        RETURN;
    END IF;
    again := true;
    SELECT g.generation_id INTO last.generation_id FROM queue_generations AS g
        WHERE g.last_at < oldest ORDER BY g.generation_id LIMIT 1 FOR UPDATE SKIP LOCKED;
    IF FOUND THEN
        DELETE FROM trail_tiles WHERE ctid = ANY(ARRAY(SELECT ctid FROM trail_tiles
            WHERE trail_tiles.generation_id = last.generation_id LIMIT greatest(most / 10, 1)));
        IF NOT FOUND THEN
            DELETE FROM queue_generations WHERE generation_id = last.generation_id;
            EXECUTE format('DROP TABLE IF EXISTS queue_entries_%s', last.generation_id);
            dropped := 1;
        END IF;
        RETURN;
    END IF;
    SELECT generation_id, seq INTO last.generation_id, last.seq FROM (SELECT generation_id, seq FROM queue_entries
        WHERE generation_id = from_here.generation_id AND seq > from_here.seq ORDER BY seq LIMIT most) AS portion
        ORDER BY seq DESC LIMIT 1;
    IF FOUND THEN
        DELETE FROM queue_entries WHERE generation_id = from_here.generation_id AND seq > from_here.seq AND seq <= last.seq
            AND ended_at < oldest;
        UPDATE upkeep SET seq = last.seq;
        RETURN;
    END IF;
    SELECT min(generation_id) INTO last.generation_id FROM queue_generations WHERE generation_id > from_here.generation_id;
    IF last.generation_id IS NOT NULL THEN
        UPDATE upkeep SET generation_id = last.generation_id, seq = 0;
        RETURN;
    END IF;
    DELETE FROM queue_gaps WHERE until < oldest;
    DELETE FROM queue_changes WHERE ctid IN (SELECT ctid FROM queue_changes WHERE at < oldest LIMIT most);
    GET DIAGNOSTICS n = ROW_COUNT;
    again := n = most;
    DELETE FROM queue_stats WHERE ctid IN (SELECT ctid FROM queue_stats WHERE at < oldest LIMIT most);
    GET DIAGNOSTICS n = ROW_COUNT;
    again := again OR n = most;
    IF NOT again THEN
        UPDATE upkeep SET swept_at = now(), generation_id = 0, seq = 0;
    END IF;
END $$;
