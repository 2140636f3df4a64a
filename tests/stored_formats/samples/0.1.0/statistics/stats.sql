BEGIN TRANSACTION;
CREATE TABLE call_sums (span INTEGER, start INTEGER, principal TEXT, tool TEXT, client TEXT, pack TEXT, source TEXT,
    calls INTEGER, errors INTEGER, chars INTEGER, ms REAL, slowest_ms REAL, last REAL,
    PRIMARY KEY (span, start, principal, tool, client)) WITHOUT ROWID;
INSERT INTO "call_sums" VALUES(3600,1767265200,'ada','github.get_issue','cursor','github','mcp_proxy',1,0,4000,8.0,8.0,1767268740.0);
INSERT INTO "call_sums" VALUES(86400,1767225600,'ada','github.get_issue','cursor','github','mcp_proxy',1,0,4000,8.0,8.0,1767268740.0);
CREATE TABLE calls (ts REAL, client TEXT, run TEXT, tool TEXT, pack TEXT, duration_ms REAL,
    success INTEGER, error_type TEXT, chars_returned INTEGER, source TEXT, principal TEXT);
INSERT INTO "calls" VALUES(1767268740.0,'cursor','r1','github.get_issue','github',8.0,1,'',4000,'mcp_proxy','ada');
CREATE TABLE connection_sums (span INTEGER, start INTEGER, principal TEXT, client TEXT, connections INTEGER,
    flat_chars INTEGER, our_chars INTEGER, PRIMARY KEY (span, start, principal, client)) WITHOUT ROWID;
INSERT INTO "connection_sums" VALUES(3600,1767265200,'ada','cursor',1,61000,2100);
INSERT INTO "connection_sums" VALUES(86400,1767225600,'ada','cursor',1,61000,2100);
CREATE TABLE connections (ts REAL, client TEXT, flat_chars INTEGER, our_chars INTEGER, principal TEXT);
INSERT INTO "connections" VALUES(1767268730.0,'cursor',61000,2100,'ada');
CREATE TABLE error_sums (span INTEGER, start INTEGER, principal TEXT, tool TEXT, error_type TEXT, count INTEGER,
    last REAL, PRIMARY KEY (span, start, principal, tool, error_type)) WITHOUT ROWID;
INSERT INTO "error_sums" VALUES(3600,1767265200,'ada','','ToolTimeout',1,1767268750.0);
INSERT INTO "error_sums" VALUES(86400,1767225600,'ada','','ToolTimeout',1,1767268750.0);
CREATE TABLE losses (ts REAL, rows INTEGER);
INSERT INTO "losses" VALUES(1767268800.0,3);
CREATE TABLE run_calls (span INTEGER, start INTEGER, principal TEXT, calls INTEGER, count INTEGER,
    PRIMARY KEY (span, start, principal, calls)) WITHOUT ROWID;
INSERT INTO "run_calls" VALUES(3600,1767265200,'ada',1,1);
INSERT INTO "run_calls" VALUES(3600,1767265200,'ada',2,1);
INSERT INTO "run_calls" VALUES(86400,1767225600,'ada',1,1);
INSERT INTO "run_calls" VALUES(86400,1767225600,'ada',2,1);
CREATE TABLE run_sums (span INTEGER, start INTEGER, principal TEXT, client TEXT, runs INTEGER, errors INTEGER,
    calls INTEGER, composed INTEGER, chars_in INTEGER, chars_out INTEGER, tool_chars INTEGER, kept_out INTEGER, ms REAL,
    PRIMARY KEY (span, start, principal, client)) WITHOUT ROWID;
INSERT INTO "run_sums" VALUES(3600,1767265200,'ada','cursor',2,1,3,1,220,140,4000,3920,16.0);
INSERT INTO "run_sums" VALUES(86400,1767225600,'ada','cursor',2,1,3,1,220,140,4000,3920,16.0);
CREATE TABLE runs (ts REAL, client TEXT, run TEXT, chars_in INTEGER, chars_out INTEGER, duration_ms REAL,
    success INTEGER, error_type TEXT, calls INTEGER, tool_chars INTEGER, ot_chars INTEGER, engine TEXT,
    principal TEXT);
INSERT INTO "runs" VALUES(1767268740.0,'cursor','r1',120,80,12.5,1,'',2,4000,0,'exact','ada');
INSERT INTO "runs" VALUES(1767268750.0,'cursor','r2',100,60,3.5,0,'ToolTimeout',1,0,0,'exact','ada');
CREATE TABLE times (span INTEGER, start INTEGER, principal TEXT, tool TEXT, bucket INTEGER, count INTEGER,
    PRIMARY KEY (span, start, principal, tool, bucket)) WITHOUT ROWID;
INSERT INTO "times" VALUES(3600,1767265200,'ada','',21,1);
INSERT INTO "times" VALUES(3600,1767265200,'ada','',28,1);
INSERT INTO "times" VALUES(3600,1767265200,'ada','github.get_issue',26,1);
INSERT INTO "times" VALUES(86400,1767225600,'ada','',21,1);
INSERT INTO "times" VALUES(86400,1767225600,'ada','',28,1);
INSERT INTO "times" VALUES(86400,1767225600,'ada','github.get_issue',26,1);
INSERT INTO "times" VALUES(2592000,1765152000,'ada','',21,1);
INSERT INTO "times" VALUES(2592000,1765152000,'ada','',28,1);
INSERT INTO "times" VALUES(2592000,1765152000,'ada','github.get_issue',26,1);
CREATE TABLE tolerance_sums (span INTEGER, start INTEGER, principal TEXT, tolerance TEXT, count INTEGER,
    PRIMARY KEY (span, start, principal, tolerance)) WITHOUT ROWID;
INSERT INTO "tolerance_sums" VALUES(3600,1767265200,'ada','fence',1);
INSERT INTO "tolerance_sums" VALUES(86400,1767225600,'ada','fence',1);
CREATE INDEX runs_by_time ON runs (ts);
CREATE INDEX calls_by_time ON calls (ts);
CREATE INDEX connections_by_time ON connections (ts);
CREATE INDEX losses_by_time ON losses (ts);
COMMIT;
PRAGMA user_version = 4;
