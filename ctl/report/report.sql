-- SPDX-License-Identifier: Apache-2.0
-- The report of a queue ($1) as one JSON text: on the visitors who came from $2 (Unix ms; NULL: since the newest generation
-- began) until $3 (NULL: now). NULL when nobody came. No row is about a single visitor.
WITH generations AS (
    SELECT generation_id, last_at FROM queue_generations JOIN queues USING (queue_id) WHERE name = $1
    ORDER BY generation DESC LIMIT CASE WHEN $2::float8 IS NULL THEN 1 END
), visits AS MATERIALIZED (
    SELECT * FROM (
        SELECT least(coalesce(joined_at, restored_at, let_in), let_in) AS came, let_in, status, ended_at,
            extract(epoch FROM admitted_at - joined_at)::float8 * 1000 AS waited,
            coalesce(let_in IS NULL AND status IN ('left', 'absent', 'expired'), false) AS gave_up,
            greatest(let_in, ended_at, CASE WHEN ended_at IS NULL THEN last_at END) AS seen
        FROM queue_entries JOIN generations USING (generation_id), LATERAL (
            -- A session that came back has no admission in this generation.
            SELECT coalesce(admitted_at, CASE WHEN deadline IS NOT NULL THEN coalesce(restored_at, deadline) END) AS let_in
        ) AS admission
    ) AS every
    WHERE came >= coalesce(to_timestamp($2::float8 / 1000), '-infinity') AND came < coalesce(to_timestamp($3::float8 / 1000), 'infinity')
), span AS (
    SELECT date_trunc('minute', min(came)) AS first, max(greatest(came, seen)) AS last FROM visits
), width AS (
    SELECT first, last, CASE WHEN last - first <= interval '2 days' THEN interval '1 minute'
        WHEN last - first <= interval '60 days' THEN interval '1 hour' ELSE interval '1 day' END AS step FROM span
), arrivals AS (
    SELECT date_bin(step, came, first) AS at, count(*) AS arrived FROM visits, width GROUP BY 1
), admissions AS (
    SELECT date_bin(step, let_in, first) AS at, count(*) AS admitted,
        percentile_disc(ARRAY[0.5, 0.9, 0.99]) WITHIN GROUP (ORDER BY waited) AS waits
    FROM visits, width WHERE let_in IS NOT NULL GROUP BY 1
), ends AS (
    SELECT date_bin(step, ended_at, first) AS at, count(*) - count(let_in) AS of_waiting, count(let_in) AS of_active,
        count(*) FILTER (WHERE gave_up) AS gave_up, count(*) FILTER (WHERE status = 'unclaimed') AS no_shows
    FROM visits, width WHERE ended_at IS NOT NULL GROUP BY 1
), changes AS (
    SELECT c.* FROM queue_changes AS c JOIN queues USING (queue_id) WHERE name = $1
), steps AS ( -- capacity: what the last change before the end of the step says
    SELECT s.at, coalesce(arrived, 0) AS arrived, coalesce(admitted, 0) AS admitted, coalesce(gave_up, 0) AS gave_up,
        coalesce(no_shows, 0) AS no_shows, waits,
        greatest(0, sum(coalesce(arrived, 0) - coalesce(admitted, 0) - coalesce(of_waiting, 0)) OVER (ORDER BY s.at)) AS waiting,
        greatest(0, sum(coalesce(admitted, 0) - coalesce(of_active, 0)) OVER (ORDER BY s.at)) AS active,
        (SELECT nullif((c.after->>'capacity')::bigint, 0) FROM changes AS c WHERE c.at < s.at + step AND c.after ? 'capacity'
            ORDER BY entry_ms DESC, entry_nth DESC LIMIT 1) AS capacity
    FROM width CROSS JOIN LATERAL generate_series(first, last, step) AS s (at)
        LEFT JOIN arrivals USING (at) LEFT JOIN admissions USING (at) LEFT JOIN ends USING (at)
), totals AS (
    SELECT json_build_object('arrived', count(*), 'admitted', count(let_in),
        'gave_up', count(*) FILTER (WHERE gave_up), 'no_shows', count(*) FILTER (WHERE status = 'unclaimed'),
        'completed', count(*) FILTER (WHERE status = 'completed'),
        'left', count(*) FILTER (WHERE status = 'left' AND let_in IS NOT NULL),
        'expired', count(*) FILTER (WHERE status = 'expired' AND let_in IS NOT NULL),
        'removed', count(*) FILTER (WHERE status IN ('removed', 'deleted')),
        'unknown', count(*) FILTER (WHERE coalesce(status, 'unknown') = 'unknown'),
        'waiting', count(*) FILTER (WHERE status = 'waiting'), 'active', count(*) FILTER (WHERE status = 'active')) AS counts,
        percentile_disc(ARRAY[0.5, 0.9, 0.99, 1]) WITHIN GROUP (ORDER BY waited) AS waits
    FROM visits
)
SELECT json_build_object('queue', $1::text, 'from', first, 'until', last,
    'step_seconds', extract(epoch FROM step)::int, 'totals', counts,
    'waits', json_build_object('p50_ms', waits[1]::bigint, 'p90_ms', waits[2]::bigint, 'p99_ms', waits[3]::bigint,
        'longest_ms', waits[4]::bigint),
    'capacity', (SELECT json_build_object('used_while_waiting', round(sum(active) / sum(capacity), 3)) FROM steps
        WHERE waiting > 0 AND capacity IS NOT NULL),
    'gaps', (SELECT coalesce(json_agg(json_build_object('reason', reason, 'since', since,
        'until', until, 'missing', missing) ORDER BY event), '[]')
        FROM queue_gaps JOIN generations USING (generation_id) WHERE until >= first AND since <= last AND reason <> 'opened'),
    'changes', (SELECT coalesce(json_agg(json_build_object('n', n, 'at', at, 'who', who, 'what', what,
        'before', before::text, 'after', after::text) ORDER BY n), '[]')
        FROM (SELECT row_number() OVER (ORDER BY entry_ms, entry_nth) AS n, * FROM changes
            WHERE at BETWEEN first AND last AND what <> 'create') AS numbered),
    'steps', (SELECT json_agg(json_build_object('at', at, 'arrived', arrived, 'admitted', admitted,
        'gave_up', gave_up, 'no_shows', no_shows, 'waiting', waiting, 'active', active, 'capacity', capacity,
        'p50_ms', s.waits[1]::bigint, 'p90_ms', s.waits[2]::bigint, 'p99_ms', s.waits[3]::bigint) ORDER BY at) FROM steps AS s))
FROM width, totals WHERE first IS NOT NULL
