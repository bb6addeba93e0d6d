-- SPDX-License-Identifier: Apache-2.0
-- Runs once, when the database is made: the user of workers, who only read (docs/operators/archive.md).
\set password `cat /run/archive/worker.password`
CREATE ROLE worker LOGIN PASSWORD :'password';
CREATE SCHEMA tellerline;
GRANT USAGE ON SCHEMA tellerline TO worker;
ALTER DEFAULT PRIVILEGES IN SCHEMA tellerline GRANT SELECT ON TABLES TO worker;
