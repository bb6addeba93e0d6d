-- SPDX-License-Identifier: Apache-2.0
-- The visits of the queue $1 in the generations $2: of the visitors who came from $3 (Unix ms; NULL: the first) until $4
-- (NULL: the last). Those who came back to a place that Redis had lost, in the next generation, are one visit; those who
-- did not ended with the generation. Those of whom it is not known when they came did so when the archive first knew of
-- others. A statement follows.
WITH generations AS (
    SELECT generation_id, generation, sale, last_at, lost,
        coalesce((SELECT min(until) FROM queue_gaps AS gaps WHERE gaps.generation_id = sales.generation_id),
            to_timestamp(generation / 1000000.0)) AS known_from
    FROM queue_sales AS sales WHERE generation_id = ANY ($2::int[])
), carried AS MATERIALIZED (
    SELECT sale, seq, max(generation) AS generation, min(joined_at) AS joined_at, min(admitted_at) AS admitted_at
    FROM queue_entries JOIN generations USING (generation_id)
    WHERE generation_id = ANY ($2::int[]) AND cardinality($2::int[]) > 1
    GROUP BY sale, seq HAVING count(*) > 1 AND bool_or(restored_at IS NOT NULL)
), visits AS MATERIALIZED (
    SELECT * FROM (
        SELECT lane, least(coalesce(joined, restored_at, let_in, known_from), let_in, now_ended) AS came, let_in,
            now_status AS status, now_ended AS ended_at,
            date_part('epoch', admitted - joined) * 1000 AS waited,
            coalesce(let_in IS NULL AND now_status IN ('left', 'absent', 'expired'), false) AS gave_up,
            greatest(let_in, now_ended, CASE WHEN now_ended IS NULL THEN last_at END) AS seen
        FROM queue_entries AS e JOIN generations AS g USING (generation_id) LEFT JOIN carried AS c USING (sale, seq), LATERAL (
            SELECT coalesce(c.joined_at, e.joined_at) AS joined, coalesce(c.admitted_at, e.admitted_at) AS admitted,
                coalesce(status IN ('waiting', 'active'), true) AND lost AS is_lost
        ) AS whole, LATERAL (
            -- A session that came back may have no admission.
            SELECT coalesce(admitted, CASE WHEN deadline IS NOT NULL THEN coalesce(restored_at, deadline) END) AS let_in,
                CASE WHEN is_lost THEN 'unknown' ELSE status END AS now_status,
                CASE WHEN is_lost THEN last_at ELSE ended_at END AS now_ended
        ) AS outcome
        WHERE e.generation_id = ANY ($2::int[]) AND (c.generation IS NULL OR c.generation = g.generation)
    ) AS every
    WHERE came >= coalesce(to_timestamp($3::float8 / 1000), '-infinity')
        AND came < coalesce(to_timestamp($4::float8 / 1000), 'infinity')
)