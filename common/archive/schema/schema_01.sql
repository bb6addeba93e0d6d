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
    PRIMARY KEY (generation_id, seq)
) PARTITION BY LIST (generation_id);
CREATE INDEX queue_entries_visitor ON queue_entries (visitor);

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

-- Drops a portion of what is older than `kept`: a generation without later events as a whole, or those of the next `most`
-- entries that ended before. again: more follows; dropped: how many generations went. A portion is a transaction of its
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
    DELETE FROM queue_generations WHERE generation_id = (SELECT g.generation_id FROM queue_generations AS g
        WHERE g.last_at < oldest ORDER BY g.generation_id LIMIT 1 FOR UPDATE SKIP LOCKED)
        RETURNING generation_id INTO last.generation_id;
    IF FOUND THEN
        EXECUTE format('DROP TABLE IF EXISTS queue_entries_%s', last.generation_id);
        dropped := 1;
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
    IF NOT again THEN
        UPDATE upkeep SET swept_at = now(), generation_id = 0, seq = 0;
    END IF;
END $$;
