-- Read once, when the volume is empty. The password is the role's, which owns its database and has no other rights.
-- The administrator has none: only psql inside of the container can be it.
\getenv password POSTGRES_PASSWORD
CREATE ROLE onetool LOGIN PASSWORD :'password';
CREATE DATABASE onetool OWNER onetool;
ALTER ROLE postgres PASSWORD NULL;
