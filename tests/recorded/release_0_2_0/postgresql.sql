SET statement_timeout = 0;
SET lock_timeout = 0;
SET idle_in_transaction_session_timeout = 0;
SET client_encoding = 'UTF8';
SET standard_conforming_strings = on;
SELECT pg_catalog.set_config('search_path', '', false);
SET check_function_bodies = false;
SET xmloption = content;
SET client_min_messages = warning;
SET row_security = off;
SET default_tablespace = '';
SET default_table_access_method = heap;
CREATE TABLE public.account (
    "user" character varying NOT NULL,
    password character varying NOT NULL
);
CREATE TABLE public.alembic_version (
    version_num character varying(32) NOT NULL
);
CREATE TABLE public.app (
    session character varying NOT NULL,
    app character varying NOT NULL,
    label character varying NOT NULL,
    state character varying NOT NULL,
    message character varying NOT NULL,
    log character varying NOT NULL,
    public_since timestamp with time zone,
    asked character varying DEFAULT ''::character varying NOT NULL,
    details character varying DEFAULT ''::character varying NOT NULL,
    shut boolean DEFAULT false NOT NULL,
    moved timestamp with time zone,
    title character varying DEFAULT ''::character varying NOT NULL
);
CREATE TABLE public.attempt (
    key character varying NOT NULL,
    until bigint NOT NULL
);
CREATE TABLE public.cluster (
    id integer NOT NULL,
    answered timestamp with time zone,
    failing_since timestamp with time zone,
    message character varying NOT NULL,
    partitions character varying NOT NULL,
    limits character varying DEFAULT ''::character varying NOT NULL,
    use character varying DEFAULT ''::character varying NOT NULL,
    measured character varying DEFAULT ''::character varying NOT NULL
);
CREATE SEQUENCE public.cluster_id_seq
    AS integer
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE public.cluster_id_seq OWNED BY public.cluster.id;
CREATE TABLE public.cluster_nodes (
    id integer NOT NULL,
    nodes character varying NOT NULL
);
CREATE SEQUENCE public.cluster_nodes_id_seq
    AS integer
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE public.cluster_nodes_id_seq OWNED BY public.cluster_nodes.id;
CREATE TABLE public.ended_app (
    label character varying NOT NULL,
    session character varying NOT NULL,
    app character varying NOT NULL,
    ended timestamp with time zone NOT NULL
);
CREATE TABLE public.file_server (
    owner character varying NOT NULL,
    id character varying NOT NULL,
    address character varying NOT NULL,
    port integer NOT NULL,
    started timestamp with time zone,
    starting timestamp with time zone,
    cleaned timestamp with time zone
);
CREATE TABLE public.folder_share (
    owner character varying NOT NULL,
    folder character varying NOT NULL,
    kind character varying NOT NULL,
    name character varying NOT NULL,
    access character varying NOT NULL,
    state character varying NOT NULL,
    created timestamp with time zone NOT NULL
);
CREATE TABLE public."grant" (
    cookie_hash character varying NOT NULL,
    label character varying NOT NULL,
    session character varying NOT NULL,
    app character varying NOT NULL,
    "user" character varying NOT NULL,
    login character varying NOT NULL,
    created timestamp with time zone NOT NULL
);
CREATE TABLE public.image_apps (
    environment character varying NOT NULL,
    version character varying NOT NULL,
    apps character varying DEFAULT ''::character varying NOT NULL
);
CREATE TABLE public.image_rule (
    environment character varying NOT NULL,
    version character varying NOT NULL,
    seen_by character varying NOT NULL,
    accounts character varying DEFAULT ''::character varying NOT NULL,
    users character varying DEFAULT ''::character varying NOT NULL
);
CREATE TABLE public.job (
    number bigint NOT NULL,
    owner character varying NOT NULL,
    state character varying NOT NULL,
    tab character varying NOT NULL,
    status_key character varying NOT NULL,
    nodes character varying NOT NULL,
    partition character varying NOT NULL,
    account character varying NOT NULL,
    qos character varying NOT NULL,
    tasks character varying NOT NULL,
    name character varying NOT NULL,
    name_key character varying NOT NULL,
    reason character varying,
    cancelled_by character varying,
    session character varying,
    stopped_by character varying,
    submitted timestamp with time zone NOT NULL,
    started timestamp with time zone NOT NULL,
    ended timestamp with time zone NOT NULL,
    deadline timestamp with time zone,
    "left" timestamp with time zone,
    gone timestamp with time zone,
    ask_at timestamp with time zone,
    extending timestamp with time zone,
    time_limit integer NOT NULL,
    restarts integer NOT NULL,
    cpus integer NOT NULL,
    shards integer NOT NULL,
    gpus integer NOT NULL,
    het_offset integer NOT NULL,
    exit_code integer,
    signal integer,
    priority bigint NOT NULL,
    place bigint NOT NULL,
    memory_mb bigint NOT NULL,
    array_id bigint,
    het_id bigint,
    tab_head boolean NOT NULL,
    all_head boolean NOT NULL,
    texted boolean NOT NULL
);
CREATE TABLE public.job_history (
    id integer NOT NULL,
    known_until timestamp with time zone
);
CREATE SEQUENCE public.job_history_id_seq
    AS integer
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE public.job_history_id_seq OWNED BY public.job_history.id;
CREATE TABLE public.job_reading (
    job character varying NOT NULL,
    by character varying NOT NULL,
    at timestamp with time zone NOT NULL
);
CREATE TABLE public.job_submission (
    owner character varying NOT NULL,
    key character varying NOT NULL,
    fingerprint character varying NOT NULL,
    job_id character varying NOT NULL,
    request character varying,
    created timestamp with time zone NOT NULL
);
CREATE TABLE public.job_template (
    owner character varying NOT NULL,
    name character varying NOT NULL,
    request character varying NOT NULL,
    script character varying,
    shared character varying NOT NULL,
    account character varying NOT NULL,
    saved timestamp with time zone NOT NULL
);
CREATE TABLE public.job_text (
    number bigint NOT NULL,
    directory character varying NOT NULL,
    command character varying NOT NULL,
    stdout character varying NOT NULL,
    stderr character varying NOT NULL,
    dependency character varying NOT NULL
);
CREATE TABLE public.job_usage (
    job character varying NOT NULL,
    asked timestamp with time zone NOT NULL,
    usage character varying NOT NULL
);
CREATE TABLE public.journal (
    id integer NOT NULL,
    "time" timestamp with time zone NOT NULL,
    who character varying NOT NULL,
    action character varying NOT NULL,
    target character varying DEFAULT ''::character varying NOT NULL,
    detail character varying DEFAULT ''::character varying NOT NULL,
    address character varying DEFAULT ''::character varying NOT NULL
);
CREATE SEQUENCE public.journal_id_seq
    AS integer
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE public.journal_id_seq OWNED BY public.journal.id;
CREATE TABLE public.known_network (
    "user" character varying NOT NULL,
    network character varying NOT NULL,
    seen bigint NOT NULL
);
CREATE TABLE public.launch_key (
    owner character varying NOT NULL,
    key character varying NOT NULL,
    session character varying NOT NULL,
    fingerprint character varying NOT NULL
);
CREATE TABLE public.login (
    hash character varying NOT NULL,
    kind character varying NOT NULL,
    "user" character varying NOT NULL,
    scopes character varying NOT NULL,
    expires timestamp with time zone NOT NULL,
    id character varying NOT NULL,
    name character varying DEFAULT ''::character varying NOT NULL,
    address character varying DEFAULT ''::character varying NOT NULL,
    created timestamp with time zone NOT NULL,
    used timestamp with time zone NOT NULL,
    revoked timestamp with time zone
);
CREATE TABLE public.origin (
    label character varying NOT NULL,
    is_port boolean NOT NULL,
    owner character varying NOT NULL,
    environment character varying NOT NULL,
    version character varying NOT NULL,
    app character varying NOT NULL,
    kept boolean NOT NULL,
    shared boolean NOT NULL,
    mark character varying NOT NULL,
    used timestamp with time zone NOT NULL
);
CREATE TABLE public.preset (
    owner character varying NOT NULL,
    name character varying NOT NULL,
    request character varying NOT NULL,
    saved timestamp with time zone NOT NULL
);
CREATE TABLE public.refusal (
    network character varying NOT NULL,
    hour integer NOT NULL,
    "user" character varying NOT NULL,
    count integer NOT NULL
);
CREATE TABLE public.registry_login (
    owner character varying NOT NULL,
    host character varying NOT NULL,
    "user" character varying NOT NULL,
    secret character varying NOT NULL,
    added timestamp with time zone,
    used timestamp with time zone
);
CREATE TABLE public.service_token (
    hash character varying NOT NULL,
    id character varying NOT NULL,
    name character varying NOT NULL,
    users character varying NOT NULL,
    groups json NOT NULL,
    created timestamp with time zone NOT NULL,
    used timestamp with time zone,
    expires timestamp with time zone NOT NULL
);
CREATE TABLE public.service_use (
    token character varying NOT NULL,
    "user" character varying NOT NULL,
    used timestamp with time zone NOT NULL
);
CREATE TABLE public.session (
    id character varying NOT NULL,
    name character varying NOT NULL,
    owner character varying NOT NULL,
    environment character varying NOT NULL,
    version character varying NOT NULL,
    cpus integer NOT NULL,
    memory_mb integer NOT NULL,
    partition character varying,
    time_limit integer,
    state character varying NOT NULL,
    created timestamp with time zone NOT NULL,
    token_hash character varying NOT NULL,
    submitted timestamp with time zone NOT NULL,
    attempts integer NOT NULL,
    job_id character varying,
    pending_reason character varying,
    estimated_start timestamp with time zone,
    node character varying,
    address character varying,
    port integer,
    started timestamp with time zone,
    ready timestamp with time zone,
    stop_requested timestamp with time zone,
    stopped_by character varying,
    ended timestamp with time zone,
    cause character varying,
    end_text character varying,
    exit_code integer,
    cleaned boolean NOT NULL,
    usage_at timestamp with time zone,
    cpu_seconds double precision,
    cpu_percent double precision,
    memory_used bigint,
    oom_kills integer NOT NULL,
    ahead integer,
    lost timestamp with time zone,
    batch character varying,
    shared_memory_mb integer,
    env_names character varying DEFAULT ''::character varying NOT NULL,
    mounts character varying DEFAULT '[]'::character varying NOT NULL,
    shared_memory_cap_mb integer,
    end_log character varying DEFAULT ''::character varying NOT NULL,
    deadline timestamp with time zone,
    restarts integer DEFAULT 0 NOT NULL,
    requeued timestamp with time zone,
    apps character varying DEFAULT ''::character varying NOT NULL,
    last_used timestamp with time zone,
    fgpu double precision,
    gpu_kind character varying DEFAULT ''::character varying NOT NULL,
    gres character varying DEFAULT ''::character varying NOT NULL,
    gpu_memory_mb integer,
    gpu_sm_percent integer,
    gpu_memory_used bigint,
    gpu_percent double precision,
    gpu_kills integer DEFAULT 0 NOT NULL,
    extending timestamp with time zone,
    log_read timestamp with time zone,
    log_read_by character varying,
    named boolean DEFAULT false NOT NULL,
    home character varying DEFAULT 'session'::character varying NOT NULL,
    oom_program character varying DEFAULT ''::character varying NOT NULL,
    stop_reason character varying DEFAULT ''::character varying NOT NULL,
    end_seen timestamp with time zone,
    oom_at timestamp with time zone,
    oom_seen timestamp with time zone,
    home_files integer,
    memory_peak bigint,
    home_bytes bigint,
    preset character varying DEFAULT ''::character varying NOT NULL,
    hub_prefix character varying DEFAULT ''::character varying NOT NULL,
    image character varying DEFAULT ''::character varying NOT NULL,
    progress character varying DEFAULT ''::character varying NOT NULL,
    progress_at timestamp with time zone,
    account character varying DEFAULT ''::character varying NOT NULL,
    qos character varying DEFAULT ''::character varying NOT NULL,
    reservation character varying DEFAULT ''::character varying NOT NULL,
    "constraint" character varying DEFAULT ''::character varying NOT NULL,
    exclusive boolean DEFAULT false NOT NULL
);
CREATE TABLE public.session_env (
    session character varying NOT NULL,
    variables character varying NOT NULL,
    hub character varying DEFAULT ''::character varying NOT NULL
);
CREATE TABLE public.session_sample (
    session character varying NOT NULL,
    at timestamp with time zone NOT NULL,
    seconds integer NOT NULL,
    until timestamp with time zone NOT NULL,
    reports integer NOT NULL,
    cpu_seconds double precision NOT NULL,
    memory bigint NOT NULL,
    gpu_percent double precision,
    gpu_memory bigint
);
CREATE TABLE public.shutting (
    key character varying NOT NULL,
    session character varying NOT NULL,
    app character varying NOT NULL,
    since timestamp with time zone NOT NULL
);
CREATE TABLE public.site_rule (
    name character varying NOT NULL,
    value character varying NOT NULL
);
CREATE TABLE public.template (
    name character varying NOT NULL,
    title character varying NOT NULL,
    description character varying DEFAULT ''::character varying NOT NULL,
    cpus integer NOT NULL,
    memory_mb integer NOT NULL,
    shared_memory_mb integer,
    time_limit integer,
    resource_group character varying,
    place integer DEFAULT 0 NOT NULL,
    fgpu double precision,
    gpu_kind character varying,
    account character varying,
    qos character varying,
    reservation character varying,
    "constraint" character varying,
    exclusive boolean DEFAULT false NOT NULL
);
CREATE TABLE public.ticket (
    hash character varying NOT NULL,
    label character varying NOT NULL,
    "user" character varying NOT NULL,
    login character varying NOT NULL,
    expires timestamp with time zone NOT NULL,
    session character varying NOT NULL,
    app character varying NOT NULL
);
ALTER TABLE ONLY public.cluster ALTER COLUMN id SET DEFAULT nextval('public.cluster_id_seq'::regclass);
ALTER TABLE ONLY public.cluster_nodes ALTER COLUMN id SET DEFAULT nextval('public.cluster_nodes_id_seq'::regclass);
ALTER TABLE ONLY public.job_history ALTER COLUMN id SET DEFAULT nextval('public.job_history_id_seq'::regclass);
ALTER TABLE ONLY public.journal ALTER COLUMN id SET DEFAULT nextval('public.journal_id_seq'::regclass);
INSERT INTO public.account VALUES ('alice', 'P');
INSERT INTO public.alembic_version VALUES ('0020');
INSERT INTO public.app VALUES ('bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb', 'terminal', 'quiet-otter', 'ready', '', '', NULL, '', '', false, NULL, '');
INSERT INTO public.cluster VALUES (1, '2026-11-24 18:00:00+00', NULL, '', '[]', '', '', '');
INSERT INTO public.ended_app VALUES ('old-owl', 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa', 'jupyterlab', '2026-11-24 19:00:00+00');
INSERT INTO public.file_server VALUES ('alice', '11111111111111111111111111111111', '10.0.0.1', 41000, '2026-11-24 18:00:00+00', NULL, NULL);
INSERT INTO public.folder_share VALUES ('alice', '/home/alice/data', 'user', 'bob', 'read', 'given', '2026-11-24 18:00:00+00');
INSERT INTO public."grant" VALUES ('cccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccc', 'quiet-otter', 'bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb', 'terminal', 'alice', 'llllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllll', '2026-11-24 18:00:00+00');
INSERT INTO public.image_rule VALUES ('python', '3.12', 'accounts', 'physics', '');
INSERT INTO public.job VALUES (43, 'alice', 'PENDING', 'pending', '', '', 'main', '', '', '', 'train', 'train', 'Priority', NULL, NULL, NULL, '2026-11-24 18:00:00+00', '9999-12-31 00:00:00+00', '9999-12-31 00:00:00+00', NULL, NULL, NULL, NULL, NULL, 60, 0, 1, 0, 0, 0, NULL, NULL, 100, -100, 0, NULL, NULL, true, true, true);
INSERT INTO public.job_history VALUES (1, '2026-11-24 18:00:00+00');
INSERT INTO public.job_submission VALUES ('alice', 'job-1', 'ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff', '43', '{"name": "train"}', '2026-11-24 18:00:00+00');
INSERT INTO public.job_template VALUES ('alice', 'train', '{}', '#!/bin/sh
echo $HOME; exit 0
', 'nobody', '', '2026-11-24 18:00:00+00');
INSERT INTO public.job_text VALUES (43, '/home/alice', '/home/alice/train.sh', 'slurm-%j.out', '', '');
INSERT INTO public.journal VALUES (1, '2026-11-24 18:00:00+00', 'alice', 'session.launch', 'bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb', 'wise-heron', '');
INSERT INTO public.journal VALUES (2, '2026-11-24 18:00:00+00', 'alice', 'app.open', 'bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb', 'Terminal of wise-heron', '192.0.2.7');
INSERT INTO public.known_network VALUES ('alice', '192.0.2.0/24', 1795543200000);
INSERT INTO public.launch_key VALUES ('alice', 'key-1', 'bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb', 'ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff');
INSERT INTO public.login VALUES ('llllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllll', 'browser', 'alice', '', '2036-11-21 18:00:00+00', '0011223344556677', '', '', '2026-11-24 18:00:00+00', '2026-11-24 18:00:00+00', NULL);
INSERT INTO public.login VALUES ('tttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttt', 'token', 'alice', 'sessions', '2036-11-21 18:00:00+00', '8899aabbccddeeff', 'notebook', '', '2026-11-24 18:00:00+00', '2026-11-24 18:00:00+00', NULL);
INSERT INTO public.origin VALUES ('quiet-otter', false, 'alice', 'python', '3.12', 'terminal', true, false, '0123456789abcdef', '2026-11-24 18:00:00+00');
INSERT INTO public.preset VALUES ('alice', 'daily', '{"environment": "python", "cpus": 2}', '2026-11-24 18:00:00+00');
INSERT INTO public.session VALUES ('aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa', 'tidy-crane', 'alice', 'python', '3.12', 2, 4096, 'main', NULL, 'FINISHED', '2026-11-24 18:00:00+00', '0000000000000000000000000000000000000000000000000000000000000000', '2026-11-24 18:00:00+00', 1, '41', NULL, NULL, NULL, NULL, NULL, '2026-11-24 18:00:00+00', NULL, NULL, NULL, '2026-11-24 19:00:00+00', 'finished', 'It ended as requested: "done".', NULL, true, NULL, NULL, NULL, NULL, 0, NULL, NULL, NULL, NULL, '', '[]', NULL, '', NULL, 0, NULL, 'jupyterlab terminal', NULL, 0.5, 'h100', '', NULL, NULL, NULL, NULL, 0, NULL, NULL, NULL, false, 'session', '', '', NULL, NULL, NULL, NULL, NULL, NULL, '', '', '', '', NULL, '', '', '', '', false);
INSERT INTO public.session VALUES ('bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb', 'wise-heron', 'alice', 'python', '3.12', 2, 4096, 'main', NULL, 'RUNNING', '2026-11-24 18:00:00+00', '0000000000000000000000000000000000000000000000000000000000000000', '2026-11-24 18:00:00+00', 1, '42', NULL, NULL, 'node1', '10.0.0.7', 40001, '2026-11-24 18:00:00+00', NULL, NULL, NULL, NULL, NULL, NULL, NULL, false, NULL, NULL, NULL, 3000000000, 0, NULL, NULL, NULL, NULL, 'TOKEN', '[]', NULL, '', '2026-11-25 18:00:00+00', 0, NULL, '', '2026-11-24 18:00:00+00', NULL, '', '', NULL, NULL, NULL, NULL, 0, NULL, NULL, NULL, true, 'session', '', '', NULL, NULL, NULL, NULL, NULL, NULL, '', '', '', '', NULL, 'physics', 'normal', '', '', false);
INSERT INTO public.session_env VALUES ('bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb', '{"TOKEN": "caf\u00e9 ''quoted''"}', '');
INSERT INTO public.session_sample VALUES ('bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb', '2026-11-24 18:00:00+00', 60, '2026-11-24 18:01:00+00', 6, 31.5, 3000000000, NULL, NULL);
INSERT INTO public.shutting VALUES ('old-owl.public', 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa', 'jupyterlab', '2026-11-24 19:00:00+00');
INSERT INTO public.site_rule VALUES ('idle_minutes', '120');
INSERT INTO public.template VALUES ('small', 'Small', '', 2, 4096, NULL, NULL, NULL, 1, NULL, NULL, NULL, 'normal', NULL, NULL, false);
SELECT pg_catalog.setval('public.cluster_id_seq', 1, false);
SELECT pg_catalog.setval('public.cluster_nodes_id_seq', 1, false);
SELECT pg_catalog.setval('public.job_history_id_seq', 1, false);
SELECT pg_catalog.setval('public.journal_id_seq', 2, true);
ALTER TABLE ONLY public.account
    ADD CONSTRAINT account_pkey PRIMARY KEY ("user");
ALTER TABLE ONLY public.alembic_version
    ADD CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num);
ALTER TABLE ONLY public.app
    ADD CONSTRAINT app_label_key UNIQUE (label);
ALTER TABLE ONLY public.app
    ADD CONSTRAINT app_pkey PRIMARY KEY (session, app);
ALTER TABLE ONLY public.attempt
    ADD CONSTRAINT attempt_pkey PRIMARY KEY (key);
ALTER TABLE ONLY public.cluster_nodes
    ADD CONSTRAINT cluster_nodes_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.cluster
    ADD CONSTRAINT cluster_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.ended_app
    ADD CONSTRAINT ended_app_pkey PRIMARY KEY (label);
ALTER TABLE ONLY public.file_server
    ADD CONSTRAINT file_server_pkey PRIMARY KEY (owner);
ALTER TABLE ONLY public.folder_share
    ADD CONSTRAINT folder_share_pkey PRIMARY KEY (owner, folder, kind, name);
ALTER TABLE ONLY public."grant"
    ADD CONSTRAINT grant_pkey PRIMARY KEY (cookie_hash);
ALTER TABLE ONLY public.image_apps
    ADD CONSTRAINT image_apps_pkey PRIMARY KEY (environment, version);
ALTER TABLE ONLY public.image_rule
    ADD CONSTRAINT image_rule_pkey PRIMARY KEY (environment, version);
ALTER TABLE ONLY public.job_history
    ADD CONSTRAINT job_history_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.job
    ADD CONSTRAINT job_pkey PRIMARY KEY (number);
ALTER TABLE ONLY public.job_reading
    ADD CONSTRAINT job_reading_pkey PRIMARY KEY (job);
ALTER TABLE ONLY public.job_submission
    ADD CONSTRAINT job_submission_pkey PRIMARY KEY (owner, key);
ALTER TABLE ONLY public.job_template
    ADD CONSTRAINT job_template_pkey PRIMARY KEY (owner, name);
ALTER TABLE ONLY public.job_text
    ADD CONSTRAINT job_text_pkey PRIMARY KEY (number);
ALTER TABLE ONLY public.job_usage
    ADD CONSTRAINT job_usage_pkey PRIMARY KEY (job);
ALTER TABLE ONLY public.journal
    ADD CONSTRAINT journal_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.known_network
    ADD CONSTRAINT known_network_pkey PRIMARY KEY ("user", network);
ALTER TABLE ONLY public.launch_key
    ADD CONSTRAINT launch_key_pkey PRIMARY KEY (owner, key);
ALTER TABLE ONLY public.login
    ADD CONSTRAINT login_pkey PRIMARY KEY (hash);
ALTER TABLE ONLY public.origin
    ADD CONSTRAINT origin_pkey PRIMARY KEY (label);
ALTER TABLE ONLY public.preset
    ADD CONSTRAINT preset_pkey PRIMARY KEY (owner, name);
ALTER TABLE ONLY public.refusal
    ADD CONSTRAINT refusal_pkey PRIMARY KEY (network, hour, "user");
ALTER TABLE ONLY public.registry_login
    ADD CONSTRAINT registry_login_pkey PRIMARY KEY (owner, host);
ALTER TABLE ONLY public.service_token
    ADD CONSTRAINT service_token_pkey PRIMARY KEY (hash);
ALTER TABLE ONLY public.service_use
    ADD CONSTRAINT service_use_pkey PRIMARY KEY (token, "user");
ALTER TABLE ONLY public.session_env
    ADD CONSTRAINT session_env_pkey PRIMARY KEY (session);
ALTER TABLE ONLY public.session
    ADD CONSTRAINT session_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.session_sample
    ADD CONSTRAINT session_sample_pkey PRIMARY KEY (session, at);
ALTER TABLE ONLY public.shutting
    ADD CONSTRAINT shutting_pkey PRIMARY KEY (key);
ALTER TABLE ONLY public.site_rule
    ADD CONSTRAINT site_rule_pkey PRIMARY KEY (name);
ALTER TABLE ONLY public.template
    ADD CONSTRAINT template_pkey PRIMARY KEY (name);
ALTER TABLE ONLY public.ticket
    ADD CONSTRAINT ticket_pkey PRIMARY KEY (hash);
CREATE INDEX ix_ended_app_ended ON public.ended_app USING btree (ended);
CREATE INDEX ix_folder_share_with ON public.folder_share USING btree (kind, name);
CREATE INDEX ix_grant_login ON public."grant" USING btree (login);
CREATE INDEX ix_grant_session ON public."grant" USING btree (session);
CREATE INDEX ix_job_reading_at ON public.job_reading USING btree (at);
CREATE INDEX ix_job_usage_asked ON public.job_usage USING btree (asked);
CREATE INDEX ix_journal_time ON public.journal USING btree ("time");
CREATE UNIQUE INDEX ix_login_id ON public.login USING btree (id);
CREATE INDEX ix_login_revoked ON public.login USING btree (revoked);
CREATE INDEX ix_login_user ON public.login USING btree ("user");
CREATE INDEX ix_origin_is_port ON public.origin USING btree (is_port);
CREATE UNIQUE INDEX ix_service_token_id ON public.service_token USING btree (id);
CREATE INDEX ix_session_batch ON public.session USING btree (batch);
CREATE INDEX ix_session_cleaned ON public.session USING btree (cleaned);
CREATE INDEX ix_session_job_id ON public.session USING btree (job_id);
CREATE INDEX ix_shutting_session ON public.shutting USING btree (session);
CREATE INDEX ix_ticket_session ON public.ticket USING btree (session);
CREATE INDEX job_array ON public.job USING btree (array_id, tab, state, number, tab_head, all_head);
CREATE INDEX job_cpus_of_all ON public.job USING btree (tab, tab_head, cpus, number);
CREATE INDEX job_ended_of_all ON public.job USING btree (tab, tab_head, ended, number);
CREATE INDEX job_het ON public.job USING btree (het_id, het_offset);
CREATE INDEX job_limit_of_all ON public.job USING btree (tab, tab_head, time_limit, number);
CREATE INDEX job_memory_of_all ON public.job USING btree (tab, tab_head, memory_mb, number);
CREATE INDEX job_name_of_all ON public.job USING btree (tab, tab_head, name_key, number);
CREATE INDEX job_newest ON public.job USING btree (owner, all_head, submitted, number);
CREATE INDEX job_newest_of_all ON public.job USING btree (all_head, submitted, number);
CREATE INDEX job_of_session ON public.job USING btree (session, number);
CREATE INDEX job_owner_of_all ON public.job USING btree (tab, tab_head, owner, number);
CREATE INDEX job_partition_of_all ON public.job USING btree (tab, tab_head, partition, number);
CREATE INDEX job_priority_of_all ON public.job USING btree (tab, tab_head, priority, number);
CREATE INDEX job_queue ON public.job USING btree (tab, partition, place, submitted, number, reason);
CREATE INDEX job_started_of_all ON public.job USING btree (tab, tab_head, started, number);
CREATE INDEX job_status_of_all ON public.job USING btree (tab, tab_head, status_key, number);
CREATE INDEX job_submission_job ON public.job_submission USING btree (owner, job_id);
CREATE INDEX job_submission_newest ON public.job_submission USING btree (owner, created);
CREATE INDEX job_tab ON public.job USING btree (owner, tab, tab_head, submitted, number);
CREATE INDEX job_tab_of_all ON public.job USING btree (tab, tab_head, submitted, number);
CREATE INDEX job_template_shared ON public.job_template USING btree (shared, account);
CREATE INDEX job_to_ask ON public.job USING btree (ask_at);
CREATE INDEX job_without_texts ON public.job USING btree (texted, tab, number);
CREATE INDEX journal_target ON public.journal USING btree (target, id);
CREATE INDEX journal_who ON public.journal USING btree (who, id);
CREATE INDEX origin_use ON public.origin USING btree (owner, environment, version, app);
CREATE UNIQUE INDEX session_hub ON public.session USING btree (hub_prefix) WHERE hub_prefix <> '' AND state NOT IN ('FINISHED', 'FAILED');
CREATE INDEX session_newest ON public.session USING btree (owner, created, id, state);
CREATE INDEX session_newest_of_all ON public.session USING btree (created, id);
CREATE INDEX session_tab ON public.session USING btree (owner, state, created, id);
CREATE INDEX session_tab_of_all ON public.session USING btree (state, created, id);
CREATE INDEX session_unseen ON public.session USING btree (owner, end_seen, ended);
