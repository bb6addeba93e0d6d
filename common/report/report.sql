-- SPDX-License-Identifier: Apache-2.0
-- The report as one JSON text. No row when nobody came. No row of it is about a single visitor.
, span AS (
    SELECT date_trunc('minute', min(came)) AS first, max(greatest(came, seen)) AS last, date_trunc('minute', min(let_in)) AS opened
    FROM visits
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
), points AS MATERIALIZED ( -- the history, each with the totals before; a point holds until the next one or the end, ten minutes at most
    SELECT at, waiting, active, nullif(capacity, 0) AS capacity, totals, lag(totals) OVER w AS before,
        least(extract(epoch FROM least(lead(at) OVER w, last) - at)::float8, 600) AS seconds
    FROM queue_stats JOIN queues USING (queue_id), span
    WHERE name = $1 AND at >= first - interval '1 day' AND at <= last + interval '1 minute' WINDOW w AS (ORDER BY at)
), told AS ( -- how much each total grew; one that is smaller than before began again. What was before the first point is known
    -- only where it is the first of the queue
    SELECT sum(CASE WHEN value < was THEN value ELSE value - was END) FILTER (WHERE name = 'eta_judged') AS judged,
        sum(CASE WHEN value < was THEN value ELSE value - was END) FILTER (WHERE name = 'eta_early') AS early,
        sum(CASE WHEN value < was THEN value ELSE value - was END) FILTER (WHERE name = 'eta_late') AS late,
        sum(CASE WHEN value < was THEN value ELSE value - was END) FILTER (WHERE name = 'eta_error') AS error
    FROM points, span, unnest(ARRAY['eta_judged', 'eta_early', 'eta_late', 'eta_error']) AS name, LATERAL (
        SELECT coalesce((totals->>name)::bigint, 0) AS value, coalesce((before->>name)::bigint, 0) AS was
    ) AS numbers
    WHERE at >= first AND (before IS NOT NULL OR at < (SELECT to_timestamp(min(generation) / 1000000.0) FROM generations)
        + interval '11 minutes')
), steps AS ( -- capacity: what the history or the last change before the end of the step says
    SELECT s.at, coalesce(arrived, 0) AS arrived, coalesce(admitted, 0) AS admitted, coalesce(gave_up, 0) AS gave_up,
        coalesce(no_shows, 0) AS no_shows, waits,
        greatest(0, sum(coalesce(arrived, 0) - coalesce(admitted, 0) - coalesce(of_waiting, 0)) OVER (ORDER BY s.at)) AS waiting,
        greatest(0, sum(coalesce(admitted, 0) - coalesce(of_active, 0)) OVER (ORDER BY s.at)) AS active,
        coalesce((SELECT nullif(p.capacity, 0) FROM queue_stats AS p -- by its key: a look at the points for each step takes minutes
                WHERE p.queue_id = (SELECT queue_id FROM queues WHERE name = $1) AND p.at >= first - interval '1 day'
                    AND p.at < s.at + step AND p.at <= last + interval '1 minute' ORDER BY p.at DESC LIMIT 1),
            (SELECT nullif((c.after->>'capacity')::bigint, 0) FROM changes AS c WHERE c.at < s.at + step AND c.after ? 'capacity'
                ORDER BY entry_ms DESC, entry_nth DESC LIMIT 1)) AS capacity
    FROM width CROSS JOIN LATERAL generate_series(first, last, step) AS s (at)
        LEFT JOIN arrivals USING (at) LEFT JOIN admissions USING (at) LEFT JOIN ends USING (at)
), busy AS ( -- since the opening, while people waited, and the capacity is known: by the history, else by the steps
    SELECT active, capacity, seconds, true AS of_history FROM points, span
    WHERE at >= opened AND at <= last AND waiting > 0 AND capacity IS NOT NULL
    UNION ALL
    SELECT active, capacity, extract(epoch FROM step)::float8, false FROM steps, width, span WHERE at + step > opened AND waiting > 0 AND capacity IS NOT NULL
), use AS (
    SELECT sum(active * seconds) / nullif(sum(capacity * seconds), 0) AS used,
        sum(greatest(0, capacity - active) * seconds) / nullif(sum(seconds), 0) AS free,
        sum(seconds) AS seconds
    FROM busy WHERE of_history = (SELECT bool_or(of_history) FROM busy)
), by_lane AS (
    SELECT lane, count(*) AS arrived, count(let_in) AS admitted, count(*) FILTER (WHERE gave_up) AS gave_up,
        count(*) FILTER (WHERE status = 'unclaimed') AS no_shows,
        percentile_disc(ARRAY[0.5, 0.9, 0.99]) WITHIN GROUP (ORDER BY waited) AS waits
    FROM visits GROUP BY lane
), names AS ( -- of the lanes, as they were last
    SELECT string_to_array(after->>'lanes', ',') AS lanes FROM changes, span WHERE after ? 'lanes' AND at <= last
    ORDER BY entry_ms DESC, entry_nth DESC LIMIT 1
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
SELECT json_build_object('queue', $1::text, 'sale', (SELECT min(sale) FROM generations HAVING count(DISTINCT sale) = 1),
    'from', first, 'until', last, 'opened', coalesce(opened, first),
    'step_seconds', extract(epoch FROM step)::int, 'totals', counts,
    'waits', json_build_object('p50_ms', waits[1]::bigint, 'p90_ms', waits[2]::bigint, 'p99_ms', waits[3]::bigint,
        'longest_ms', waits[4]::bigint),
    'lanes', (SELECT json_agg(json_build_object('lane', coalesce(names.lanes[lane + 1], lane::text), 'arrived', arrived,
        'admitted', admitted, 'gave_up', gave_up, 'no_shows', no_shows, 'p50_ms', waits[1]::bigint, 'p90_ms', waits[2]::bigint,
        'p99_ms', waits[3]::bigint) ORDER BY lane) FROM by_lane LEFT JOIN names ON true),
    'capacity', (SELECT json_build_object('used_while_waiting', round(used::numeric, 3), 'free_while_waiting', round(free::numeric, 1),
        'waiting_seconds', coalesce(seconds, 0)::bigint) FROM use),
    'estimates', (SELECT json_build_object('judged', judged, 'early', early, 'late', late,
        'inside_percent', round(100.0 * greatest(0, judged - early - late) / judged, 1), 'error_percent', round(1.0 * error / judged, 1))
        FROM told WHERE judged > 0),
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
FROM width JOIN span USING (first, last), totals WHERE first IS NOT NULL
