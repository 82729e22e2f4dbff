\echo Use "ALTER EXTENSION kslate UPDATE" to load this file. \quit

-- From 0.1.0 to 0.2.0: no function has changed. The storage has: SELECT kslate_setup() migrates it (sql/002_took_over_from.sql).
--
-- A changed function stands here with plain CREATE, after a DROP where its columns differ, and without EXECUTE for PUBLIC. What differs
-- from a new 0.2.0 is told by tests/tests/upgrade.
