BEGIN TRANSACTION;
CREATE TABLE effects (principal TEXT NOT NULL, run TEXT NOT NULL, call INTEGER NOT NULL, tool TEXT NOT NULL,
    line INTEGER, fingerprint TEXT NOT NULL, state TEXT NOT NULL, at REAL NOT NULL, ended REAL, writer TEXT NOT NULL,
    start INTEGER NOT NULL DEFAULT 0, value TEXT, given_key TEXT NOT NULL DEFAULT '',
    directory TEXT NOT NULL DEFAULT '', PRIMARY KEY (run, start, call)) WITHOUT ROWID;
INSERT INTO "effects" VALUES('ada','b1',0,'bank.pay',3,'9ca158acaff8ec79180de78f9204f9de','done',1767268800.0,1767268800.0,'efa0dc3556bed6862a91a0d9cc5d3ffc',1,'{"paid":9}','key-0','');
INSERT INTO "effects" VALUES('ada','r1',0,'bank.pay',3,'33749773b1dcdc70f0c0f5e59fd89ab8','done',1767268800.0,1767268800.0,'efa0dc3556bed6862a91a0d9cc5d3ffc',0,NULL,'key-0','');
INSERT INTO "effects" VALUES('ada','r1',1,'bank.pay',3,'14360afef044400befe413a3ef2e7c89','failed',1767268800.0,1767268800.0,'efa0dc3556bed6862a91a0d9cc5d3ffc',0,NULL,'key-1','');
INSERT INTO "effects" VALUES('ada','r1',2,'bank.pay',3,'87979a56286dab20dfab757bc0587116','unknown',1767268800.0,1767268800.0,'efa0dc3556bed6862a91a0d9cc5d3ffc',0,NULL,'key-2','');
INSERT INTO "effects" VALUES('ada','r1',3,'bank.pay',3,'44409ec20ebba8292e9b33b6fa1fafa7','sent',1767268800.0,NULL,'efa0dc3556bed6862a91a0d9cc5d3ffc',0,NULL,'key-3','');
CREATE TABLE ledger_key (key BLOB NOT NULL);
INSERT INTO "ledger_key" VALUES(X'9591F45A16F308C64A2200D91B9DF21C684B878F342C8C72E2CAB98E61DAE64D');
CREATE TABLE runs (id TEXT PRIMARY KEY, principal TEXT NOT NULL, run TEXT NOT NULL, state TEXT NOT NULL,
    starts INTEGER NOT NULL DEFAULT 0, beat REAL NOT NULL DEFAULT 0, writer TEXT NOT NULL DEFAULT '', question TEXT,
    answer TEXT, cancelled INTEGER NOT NULL DEFAULT 0, ending TEXT, created REAL NOT NULL,
    packs TEXT) WITHOUT ROWID;
INSERT INTO "runs" VALUES('b1','ada','{"id":"b1","principal":"ada","command":"bank.pay(amount=9)","created":1767268800.0,"name":"nightly","client":"cursor","groups":["ops"],"admin":true,"directory":"/srv/shop"}','done',1,1767268800.0,'efa0dc3556bed6862a91a0d9cc5d3ffc',NULL,NULL,0,'{"state":"done","at":1767268801.0,"texts":["9 paid"],"error":"","handle":"hhhhhhhhhhhhhhhhhhhhhh"}',1767268800.0,'{"bank":"1.0"}');
INSERT INTO "runs" VALUES('b2','ada','{"id":"b2","principal":"ada","command":"bank.pay(amount=8)","created":1767268802.0,"name":"","client":"","groups":[],"admin":false,"directory":""}','asks',1,1767268800.0,'efa0dc3556bed6862a91a0d9cc5d3ffc','{"number":1,"text":"Pay 8?"}',NULL,0,NULL,1767268802.0,'{"bank":"1.0"}');
CREATE INDEX effects_open ON effects (principal, fingerprint) WHERE state IN ('sent', 'unknown');
CREATE INDEX effects_by_time ON effects (at);
CREATE INDEX runs_by_time ON runs (principal, created);
COMMIT;
PRAGMA user_version = 2;
