-- SPDX-License-Identifier: Apache-2.0
-- A sale in a list, as one JSON text. No row when nobody came.
SELECT json_build_object('sale', (SELECT min(sale) FROM generations), 'from', min(came), 'until', max(greatest(came, seen)),
    'arrived', count(*), 'admitted', count(let_in), 'gave_up', count(*) FILTER (WHERE gave_up),
    'no_shows', count(*) FILTER (WHERE status = 'unclaimed'),
    'p90_ms', (percentile_disc(0.9) WITHIN GROUP (ORDER BY waited))::bigint)
FROM visits WHERE $1::text IS NOT NULL HAVING count(*) > 0
