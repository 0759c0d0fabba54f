BEGIN TRANSACTION;
CREATE TABLE account (
	user VARCHAR NOT NULL, 
	password VARCHAR NOT NULL, 
	PRIMARY KEY (user)
);
INSERT INTO "account" VALUES('alice','P');
CREATE TABLE alembic_version (
	version_num VARCHAR(32) NOT NULL, 
	CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num)
);
INSERT INTO "alembic_version" VALUES('0020');
CREATE TABLE "app" (
	session VARCHAR NOT NULL, 
	app VARCHAR NOT NULL, 
	label VARCHAR NOT NULL, 
	state VARCHAR NOT NULL, 
	message VARCHAR NOT NULL, 
	log VARCHAR NOT NULL, 
	public_since DATETIME, 
	asked VARCHAR DEFAULT '' NOT NULL, 
	details VARCHAR DEFAULT '' NOT NULL, 
	shut BOOLEAN DEFAULT 0 NOT NULL, moved DATETIME, title VARCHAR DEFAULT '' NOT NULL, 
	PRIMARY KEY (session, app), 
	UNIQUE (label)
);
INSERT INTO "app" VALUES('bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb','terminal','quiet-otter','ready','','',NULL,'','',0,NULL,'');
CREATE TABLE attempt (
	"key" VARCHAR NOT NULL, 
	until BIGINT NOT NULL, 
	PRIMARY KEY ("key")
);
CREATE TABLE cluster (
	id INTEGER NOT NULL, 
	answered DATETIME, 
	failing_since DATETIME, 
	message VARCHAR NOT NULL, 
	partitions VARCHAR NOT NULL, limits VARCHAR DEFAULT '' NOT NULL, use VARCHAR DEFAULT '' NOT NULL, measured VARCHAR DEFAULT '' NOT NULL, 
	PRIMARY KEY (id)
);
INSERT INTO "cluster" VALUES(1,'2026-11-24 18:00:00.000000',NULL,'','[]','','','');
CREATE TABLE cluster_nodes (
	id INTEGER NOT NULL, 
	nodes VARCHAR NOT NULL, 
	PRIMARY KEY (id)
);
CREATE TABLE ended_app (
	label VARCHAR NOT NULL, 
	session VARCHAR NOT NULL, 
	app VARCHAR NOT NULL, 
	ended DATETIME NOT NULL, 
	PRIMARY KEY (label)
);
INSERT INTO "ended_app" VALUES('old-owl','aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa','jupyterlab','2026-11-24 19:00:00.000000');
CREATE TABLE file_server (
	owner VARCHAR NOT NULL, 
	id VARCHAR NOT NULL, 
	address VARCHAR NOT NULL, 
	port INTEGER NOT NULL, 
	started DATETIME, 
	starting DATETIME, 
	cleaned DATETIME, 
	PRIMARY KEY (owner)
);
INSERT INTO "file_server" VALUES('alice','11111111111111111111111111111111','10.0.0.1',41000,'2026-11-24 18:00:00.000000',NULL,NULL);
CREATE TABLE folder_share (
	owner VARCHAR NOT NULL, 
	folder VARCHAR NOT NULL, 
	kind VARCHAR NOT NULL, 
	name VARCHAR NOT NULL, 
	access VARCHAR NOT NULL, 
	state VARCHAR NOT NULL, 
	created DATETIME NOT NULL, 
	PRIMARY KEY (owner, folder, kind, name)
);
INSERT INTO "folder_share" VALUES('alice','/home/alice/data','user','bob','read','given','2026-11-24 18:00:00.000000');
CREATE TABLE grant (
	cookie_hash VARCHAR NOT NULL, 
	label VARCHAR NOT NULL, 
	session VARCHAR NOT NULL, 
	app VARCHAR NOT NULL, 
	user VARCHAR NOT NULL, 
	login VARCHAR NOT NULL, 
	created DATETIME NOT NULL, 
	PRIMARY KEY (cookie_hash)
);
INSERT INTO "grant" VALUES('cccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccc','quiet-otter','bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb','terminal','alice','llllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllll','2026-11-24 18:00:00.000000');
CREATE TABLE image_apps (
	environment VARCHAR NOT NULL, 
	version VARCHAR NOT NULL, 
	apps VARCHAR DEFAULT '' NOT NULL, 
	PRIMARY KEY (environment, version)
);
CREATE TABLE image_rule (
	environment VARCHAR NOT NULL, 
	version VARCHAR NOT NULL, 
	seen_by VARCHAR NOT NULL, 
	accounts VARCHAR DEFAULT '' NOT NULL, 
	users VARCHAR DEFAULT '' NOT NULL, 
	PRIMARY KEY (environment, version)
);
INSERT INTO "image_rule" VALUES('python','3.12','accounts','physics','');
CREATE TABLE job (
	number BIGINT NOT NULL, 
	owner VARCHAR NOT NULL, 
	state VARCHAR NOT NULL, 
	tab VARCHAR NOT NULL, 
	status_key VARCHAR NOT NULL, 
	nodes VARCHAR NOT NULL, 
	partition VARCHAR NOT NULL, 
	account VARCHAR NOT NULL, 
	qos VARCHAR NOT NULL, 
	tasks VARCHAR NOT NULL, 
	name VARCHAR NOT NULL, 
	name_key VARCHAR NOT NULL, 
	reason VARCHAR, 
	cancelled_by VARCHAR, 
	session VARCHAR, 
	stopped_by VARCHAR, 
	submitted DATETIME NOT NULL, 
	started DATETIME NOT NULL, 
	ended DATETIME NOT NULL, 
	deadline DATETIME, 
	"left" DATETIME, 
	gone DATETIME, 
	ask_at DATETIME, 
	extending DATETIME, 
	time_limit INTEGER NOT NULL, 
	restarts INTEGER NOT NULL, 
	cpus INTEGER NOT NULL, 
	shards INTEGER NOT NULL, 
	gpus INTEGER NOT NULL, 
	het_offset INTEGER NOT NULL, 
	exit_code INTEGER, 
	signal INTEGER, 
	priority BIGINT NOT NULL, 
	place BIGINT NOT NULL, 
	memory_mb BIGINT NOT NULL, 
	array_id BIGINT, 
	het_id BIGINT, 
	tab_head BOOLEAN NOT NULL, 
	all_head BOOLEAN NOT NULL, 
	texted BOOLEAN NOT NULL, 
	PRIMARY KEY (number)
);
INSERT INTO "job" VALUES(43,'alice','PENDING','pending','','','main','','','','train','train','Priority',NULL,NULL,NULL,'2026-11-24 18:00:00.000000','9999-12-31 00:00:00.000000','9999-12-31 00:00:00.000000',NULL,NULL,NULL,NULL,NULL,60,0,1,0,0,0,NULL,NULL,100,-100,0,NULL,NULL,1,1,1);
CREATE TABLE job_history (
	id INTEGER NOT NULL, 
	known_until DATETIME, 
	PRIMARY KEY (id)
);
INSERT INTO "job_history" VALUES(1,'2026-11-24 18:00:00.000000');
CREATE TABLE job_reading (
	job VARCHAR NOT NULL, 
	"by" VARCHAR NOT NULL, 
	at DATETIME NOT NULL, 
	PRIMARY KEY (job)
);
CREATE TABLE job_submission (
	owner VARCHAR NOT NULL, 
	"key" VARCHAR NOT NULL, 
	fingerprint VARCHAR NOT NULL, 
	job_id VARCHAR NOT NULL, 
	request VARCHAR, 
	created DATETIME NOT NULL, 
	PRIMARY KEY (owner, "key")
);
INSERT INTO "job_submission" VALUES('alice','job-1','ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff','43','{"name": "train"}','2026-11-24 18:00:00.000000');
CREATE TABLE job_template (
	owner VARCHAR NOT NULL, 
	name VARCHAR NOT NULL, 
	request VARCHAR NOT NULL, 
	script VARCHAR, 
	shared VARCHAR NOT NULL, 
	account VARCHAR NOT NULL, 
	saved DATETIME NOT NULL, 
	PRIMARY KEY (owner, name)
);
INSERT INTO "job_template" VALUES('alice','train','{}','#!/bin/sh
echo $HOME; exit 0
','nobody','','2026-11-24 18:00:00.000000');
CREATE TABLE job_text (
	number BIGINT NOT NULL, 
	directory VARCHAR NOT NULL, 
	command VARCHAR NOT NULL, 
	stdout VARCHAR NOT NULL, 
	stderr VARCHAR NOT NULL, 
	dependency VARCHAR NOT NULL, 
	PRIMARY KEY (number)
);
INSERT INTO "job_text" VALUES(43,'/home/alice','/home/alice/train.sh','slurm-%j.out','','');
CREATE TABLE job_usage (
	job VARCHAR NOT NULL, 
	asked DATETIME NOT NULL, 
	usage VARCHAR NOT NULL, 
	PRIMARY KEY (job)
);
CREATE TABLE journal (
	id INTEGER NOT NULL, 
	time DATETIME NOT NULL, 
	who VARCHAR NOT NULL, 
	action VARCHAR NOT NULL, 
	target VARCHAR DEFAULT '' NOT NULL, 
	detail VARCHAR DEFAULT '' NOT NULL, 
	address VARCHAR DEFAULT '' NOT NULL, 
	PRIMARY KEY (id)
);
INSERT INTO "journal" VALUES(1,'2026-11-24 18:00:00.000000','alice','session.launch','bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb','wise-heron','');
INSERT INTO "journal" VALUES(2,'2026-11-24 18:00:00.000000','alice','app.open','bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb','Terminal of wise-heron','192.0.2.7');
CREATE TABLE known_network (
	user VARCHAR NOT NULL, 
	network VARCHAR NOT NULL, 
	seen BIGINT NOT NULL, 
	PRIMARY KEY (user, network)
);
INSERT INTO "known_network" VALUES('alice','192.0.2.0/24',1795543200000);
CREATE TABLE launch_key (
	owner VARCHAR NOT NULL, 
	"key" VARCHAR NOT NULL, 
	session VARCHAR NOT NULL, 
	fingerprint VARCHAR NOT NULL, 
	PRIMARY KEY (owner, "key")
);
INSERT INTO "launch_key" VALUES('alice','key-1','bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb','ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff');
CREATE TABLE "login" (
	hash VARCHAR NOT NULL, 
	kind VARCHAR NOT NULL, 
	user VARCHAR NOT NULL, 
	scopes VARCHAR NOT NULL, 
	expires DATETIME NOT NULL, 
	id VARCHAR NOT NULL, 
	name VARCHAR DEFAULT ('') NOT NULL, 
	address VARCHAR DEFAULT ('') NOT NULL, 
	created DATETIME NOT NULL, 
	used DATETIME NOT NULL, 
	revoked DATETIME, 
	PRIMARY KEY (hash)
);
INSERT INTO "login" VALUES('llllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllll','browser','alice','','2036-11-21 18:00:00.000000','0011223344556677','','','2026-11-24 18:00:00.000000','2026-11-24 18:00:00.000000',NULL);
INSERT INTO "login" VALUES('tttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttt','token','alice','sessions','2036-11-21 18:00:00.000000','8899aabbccddeeff','notebook','','2026-11-24 18:00:00.000000','2026-11-24 18:00:00.000000',NULL);
CREATE TABLE origin (
	label VARCHAR NOT NULL, 
	is_port BOOLEAN NOT NULL, 
	owner VARCHAR NOT NULL, 
	environment VARCHAR NOT NULL, 
	version VARCHAR NOT NULL, 
	app VARCHAR NOT NULL, 
	kept BOOLEAN NOT NULL, 
	shared BOOLEAN NOT NULL, 
	mark VARCHAR NOT NULL, 
	used DATETIME NOT NULL, 
	PRIMARY KEY (label)
);
INSERT INTO "origin" VALUES('quiet-otter',0,'alice','python','3.12','terminal',1,0,'0123456789abcdef','2026-11-24 18:00:00.000000');
CREATE TABLE preset (
	owner VARCHAR NOT NULL, 
	name VARCHAR NOT NULL, 
	request VARCHAR NOT NULL, 
	saved DATETIME NOT NULL, 
	PRIMARY KEY (owner, name)
);
INSERT INTO "preset" VALUES('alice','daily','{"environment": "python", "cpus": 2}','2026-11-24 18:00:00.000000');
CREATE TABLE refusal (
	network VARCHAR NOT NULL, 
	hour INTEGER NOT NULL, 
	user VARCHAR NOT NULL, 
	count INTEGER NOT NULL, 
	PRIMARY KEY (network, hour, user)
);
CREATE TABLE registry_login (
	owner VARCHAR NOT NULL, 
	host VARCHAR NOT NULL, 
	user VARCHAR NOT NULL, 
	secret VARCHAR NOT NULL, added DATETIME, used DATETIME, 
	PRIMARY KEY (owner, host)
);
CREATE TABLE service_token (
	hash VARCHAR NOT NULL, 
	id VARCHAR NOT NULL, 
	name VARCHAR NOT NULL, 
	users VARCHAR NOT NULL, 
	groups JSON NOT NULL, 
	created DATETIME NOT NULL, 
	used DATETIME, 
	expires DATETIME NOT NULL, 
	PRIMARY KEY (hash)
);
CREATE TABLE service_use (
	token VARCHAR NOT NULL, 
	user VARCHAR NOT NULL, 
	used DATETIME NOT NULL, 
	PRIMARY KEY (token, user)
);
CREATE TABLE "session" (
	id VARCHAR NOT NULL, 
	name VARCHAR NOT NULL, 
	owner VARCHAR NOT NULL, 
	environment VARCHAR NOT NULL, 
	version VARCHAR NOT NULL, 
	cpus INTEGER NOT NULL, 
	memory_mb INTEGER NOT NULL, 
	partition VARCHAR, 
	time_limit INTEGER, 
	state VARCHAR NOT NULL, 
	created DATETIME NOT NULL, 
	token_hash VARCHAR NOT NULL, 
	submitted DATETIME NOT NULL, 
	attempts INTEGER NOT NULL, 
	job_id VARCHAR, 
	pending_reason VARCHAR, 
	estimated_start DATETIME, 
	node VARCHAR, 
	address VARCHAR, 
	port INTEGER, 
	started DATETIME, 
	ready DATETIME, 
	stop_requested DATETIME, 
	stopped_by VARCHAR, 
	ended DATETIME, 
	cause VARCHAR, 
	end_text VARCHAR, 
	exit_code INTEGER, 
	cleaned BOOLEAN NOT NULL, 
	usage_at DATETIME, 
	cpu_seconds FLOAT, 
	cpu_percent FLOAT, 
	memory_used BIGINT, 
	oom_kills INTEGER NOT NULL, 
	ahead INTEGER, 
	lost DATETIME, 
	batch VARCHAR, 
	shared_memory_mb INTEGER, 
	env_names VARCHAR DEFAULT ('') NOT NULL, 
	mounts VARCHAR DEFAULT '[]' NOT NULL, 
	shared_memory_cap_mb INTEGER, 
	end_log VARCHAR DEFAULT ('') NOT NULL, 
	deadline DATETIME, 
	restarts INTEGER DEFAULT '0' NOT NULL, 
	requeued DATETIME, 
	apps VARCHAR DEFAULT ('') NOT NULL, 
	last_used DATETIME, 
	fgpu FLOAT, 
	gpu_kind VARCHAR DEFAULT ('') NOT NULL, 
	gres VARCHAR DEFAULT ('') NOT NULL, 
	gpu_memory_mb INTEGER, 
	gpu_sm_percent INTEGER, 
	gpu_memory_used BIGINT, 
	gpu_percent FLOAT, 
	gpu_kills INTEGER DEFAULT '0' NOT NULL, 
	extending DATETIME, 
	log_read DATETIME, 
	log_read_by VARCHAR, 
	named BOOLEAN DEFAULT 0 NOT NULL, 
	home VARCHAR DEFAULT 'session' NOT NULL, 
	oom_program VARCHAR DEFAULT '' NOT NULL, 
	stop_reason VARCHAR DEFAULT '' NOT NULL, 
	end_seen DATETIME, 
	oom_at DATETIME, 
	oom_seen DATETIME, 
	home_files INTEGER, 
	memory_peak BIGINT, 
	home_bytes BIGINT, preset VARCHAR DEFAULT '' NOT NULL, hub_prefix VARCHAR DEFAULT '' NOT NULL, image VARCHAR DEFAULT '' NOT NULL, progress VARCHAR DEFAULT '' NOT NULL, progress_at DATETIME, account VARCHAR DEFAULT '' NOT NULL, qos VARCHAR DEFAULT '' NOT NULL, reservation VARCHAR DEFAULT '' NOT NULL, "constraint" VARCHAR DEFAULT '' NOT NULL, "exclusive" BOOLEAN DEFAULT 0 NOT NULL, 
	PRIMARY KEY (id)
);
INSERT INTO "session" VALUES('aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa','tidy-crane','alice','python','3.12',2,4096,'main',NULL,'FINISHED','2026-11-24 18:00:00.000000','0000000000000000000000000000000000000000000000000000000000000000','2026-11-24 18:00:00.000000',1,'41',NULL,NULL,NULL,NULL,NULL,'2026-11-24 18:00:00.000000',NULL,NULL,NULL,'2026-11-24 19:00:00.000000','finished','It ended as requested: "done".',NULL,1,NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,NULL,'','[]',NULL,'',NULL,0,NULL,'jupyterlab terminal',NULL,0.5,'h100','',NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,0,'session','','',NULL,NULL,NULL,NULL,NULL,NULL,'','','','',NULL,'','','','',0);
INSERT INTO "session" VALUES('bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb','wise-heron','alice','python','3.12',2,4096,'main',NULL,'RUNNING','2026-11-24 18:00:00.000000','0000000000000000000000000000000000000000000000000000000000000000','2026-11-24 18:00:00.000000',1,'42',NULL,NULL,'node1','10.0.0.7',40001,'2026-11-24 18:00:00.000000',NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,3000000000,0,NULL,NULL,NULL,NULL,'TOKEN','[]',NULL,'','2026-11-25 18:00:00.000000',0,NULL,'','2026-11-24 18:00:00.000000',NULL,'','',NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,1,'session','','',NULL,NULL,NULL,NULL,NULL,NULL,'','','','',NULL,'physics','normal','','',0);
CREATE TABLE session_env (
	session VARCHAR NOT NULL, 
	variables VARCHAR NOT NULL, hub VARCHAR DEFAULT '' NOT NULL, 
	PRIMARY KEY (session)
);
INSERT INTO "session_env" VALUES('bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb','{"TOKEN": "caf\u00e9 ''quoted''"}','');
CREATE TABLE session_sample (
	session VARCHAR NOT NULL, 
	at DATETIME NOT NULL, 
	seconds INTEGER NOT NULL, 
	until DATETIME NOT NULL, 
	reports INTEGER NOT NULL, 
	cpu_seconds FLOAT NOT NULL, 
	memory BIGINT NOT NULL, 
	gpu_percent FLOAT, 
	gpu_memory BIGINT, 
	PRIMARY KEY (session, at)
);
INSERT INTO "session_sample" VALUES('bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb','2026-11-24 18:00:00.000000',60,'2026-11-24 18:01:00.000000',6,31.5,3000000000,NULL,NULL);
CREATE TABLE shutting (
	"key" VARCHAR NOT NULL, 
	session VARCHAR NOT NULL, 
	app VARCHAR NOT NULL, 
	since DATETIME NOT NULL, 
	PRIMARY KEY ("key")
);
INSERT INTO "shutting" VALUES('old-owl.public','aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa','jupyterlab','2026-11-24 19:00:00.000000');
CREATE TABLE site_rule (
	name VARCHAR NOT NULL, 
	value VARCHAR NOT NULL, 
	PRIMARY KEY (name)
);
INSERT INTO "site_rule" VALUES('idle_minutes','120');
CREATE TABLE template (
	name VARCHAR NOT NULL, 
	title VARCHAR NOT NULL, 
	description VARCHAR DEFAULT '' NOT NULL, 
	cpus INTEGER NOT NULL, 
	memory_mb INTEGER NOT NULL, 
	shared_memory_mb INTEGER, 
	time_limit INTEGER, 
	resource_group VARCHAR, 
	place INTEGER DEFAULT '0' NOT NULL, fgpu FLOAT, gpu_kind VARCHAR, account VARCHAR, qos VARCHAR, reservation VARCHAR, "constraint" VARCHAR, "exclusive" BOOLEAN DEFAULT 0 NOT NULL, 
	PRIMARY KEY (name)
);
INSERT INTO "template" VALUES('small','Small','',2,4096,NULL,NULL,NULL,1,NULL,NULL,NULL,'normal',NULL,NULL,0);
CREATE TABLE ticket (
	hash VARCHAR NOT NULL, 
	label VARCHAR NOT NULL, 
	user VARCHAR NOT NULL, 
	login VARCHAR NOT NULL, 
	expires DATETIME NOT NULL, session VARCHAR NOT NULL, app VARCHAR NOT NULL, 
	PRIMARY KEY (hash)
);
CREATE INDEX ix_grant_login ON grant (login);
CREATE INDEX ix_grant_session ON grant (session);
CREATE INDEX ix_journal_time ON journal (time);
CREATE INDEX journal_who ON journal (who, id);
CREATE INDEX ix_origin_is_port ON origin (is_port);
CREATE INDEX origin_use ON origin (owner, environment, version, app);
CREATE INDEX ix_shutting_session ON shutting (session);
CREATE INDEX ix_ticket_session ON ticket (session);
CREATE UNIQUE INDEX ix_login_id ON login (id);
CREATE INDEX ix_login_user ON login (user);
CREATE INDEX ix_login_revoked ON login (revoked);
CREATE INDEX session_newest_of_all ON session (created, id);
CREATE INDEX ix_session_batch ON session (batch);
CREATE INDEX session_newest ON session (owner, created, id, state);
CREATE INDEX ix_session_job_id ON session (job_id);
CREATE INDEX session_tab ON session (owner, state, created, id);
CREATE INDEX ix_session_cleaned ON session (cleaned);
CREATE INDEX session_tab_of_all ON session (state, created, id);
CREATE INDEX session_unseen ON session (owner, end_seen, ended);
CREATE INDEX ix_ended_app_ended ON ended_app (ended);
CREATE INDEX journal_target ON journal (target, id);
CREATE INDEX job_newest ON job (owner, all_head, submitted, number);
CREATE INDEX job_newest_of_all ON job (all_head, submitted, number);
CREATE INDEX job_tab ON job (owner, tab, tab_head, submitted, number);
CREATE INDEX job_tab_of_all ON job (tab, tab_head, submitted, number);
CREATE INDEX job_ended_of_all ON job (tab, tab_head, ended, number);
CREATE INDEX job_started_of_all ON job (tab, tab_head, started, number);
CREATE INDEX job_name_of_all ON job (tab, tab_head, name_key, number);
CREATE INDEX job_owner_of_all ON job (tab, tab_head, owner, number);
CREATE INDEX job_status_of_all ON job (tab, tab_head, status_key, number);
CREATE INDEX job_partition_of_all ON job (tab, tab_head, partition, number);
CREATE INDEX job_limit_of_all ON job (tab, tab_head, time_limit, number);
CREATE INDEX job_priority_of_all ON job (tab, tab_head, priority, number);
CREATE INDEX job_cpus_of_all ON job (tab, tab_head, cpus, number);
CREATE INDEX job_memory_of_all ON job (tab, tab_head, memory_mb, number);
CREATE INDEX job_queue ON job (tab, partition, place, submitted, number, reason);
CREATE INDEX job_array ON job (array_id, tab, state, number, tab_head, all_head);
CREATE INDEX job_het ON job (het_id, het_offset);
CREATE INDEX job_to_ask ON job (ask_at);
CREATE INDEX job_without_texts ON job (texted, tab, number);
CREATE INDEX job_of_session ON job (session, number);
CREATE INDEX job_template_shared ON job_template (shared, account);
CREATE INDEX job_submission_job ON job_submission (owner, job_id);
CREATE INDEX job_submission_newest ON job_submission (owner, created);
CREATE INDEX ix_job_usage_asked ON job_usage (asked);
CREATE INDEX ix_job_reading_at ON job_reading (at);
CREATE UNIQUE INDEX ix_service_token_id ON service_token (id);
CREATE UNIQUE INDEX session_hub ON session (hub_prefix) WHERE hub_prefix <> '' AND state NOT IN ('FINISHED', 'FAILED');
CREATE INDEX ix_folder_share_with ON folder_share (kind, name);
COMMIT;
