-- The schema of release 0.1.0. It never changes again: later migrations change what it has created.

-- ---------------------------------------------------------------------------------------- Platform

-- Events: the log of everything that happened, and how long requests took.

CREATE TABLE event_log (
    tenant_id varchar NOT NULL,
    type varchar NOT NULL,
    correlation_id varchar NOT NULL,
    parent_id varchar,
    request_id varchar,
    actor_id varchar,
    depth smallint DEFAULT 0 NOT NULL,
    root_id varchar,
    offspring integer DEFAULT 0 NOT NULL,
    test boolean DEFAULT false NOT NULL,
    data jsonb NOT NULL,
    created_at timestamptz DEFAULT now() NOT NULL,
    id varchar NOT NULL,
    CONSTRAINT pk_event_log PRIMARY KEY (id)
);
CREATE INDEX ix_event_log_said ON event_log ((data->>'agent_id'), created_at)
    WHERE type IN ('agent.chat.message', 'agent.chat.completed') AND NOT test;
CREATE INDEX ix_event_log_correlation ON event_log (tenant_id, correlation_id, created_at, id);
CREATE INDEX ix_event_log_time ON event_log (tenant_id, created_at, id);
CREATE INDEX ix_event_log_type ON event_log (tenant_id, type, created_at, id);
CREATE INDEX ix_event_log_received_by_tenant ON event_log (tenant_id, created_at)
    WHERE type = 'system.incoming_webhook.received';
CREATE INDEX ix_event_log_test ON event_log (created_at) WHERE test;
CREATE INDEX ix_event_log_root ON event_log (root_id) WHERE root_id IS NOT NULL;

CREATE TABLE request_spans (
    tenant_id varchar NOT NULL,
    correlation_id varchar NOT NULL,
    request_id varchar NOT NULL,
    started_at timestamptz NOT NULL,
    duration_ms double precision NOT NULL,
    id varchar NOT NULL,
    CONSTRAINT pk_request_spans PRIMARY KEY (id)
);
CREATE INDEX ix_request_spans_correlation ON request_spans (tenant_id, correlation_id);
CREATE INDEX ix_request_spans_started_at ON request_spans (started_at);

-- Work: the ledger, answers to repeated requests, counted failures, and state of the instance.

CREATE TABLE work (
    tenant_id varchar,
    kind varchar NOT NULL,
    ref_id varchar,
    dedupe_key varchar,
    lane varchar,
    state varchar DEFAULT 'pending' NOT NULL,
    run_at timestamptz DEFAULT now() NOT NULL,
    attempt integer DEFAULT 0 NOT NULL,
    max_attempts integer NOT NULL,
    lease_token varchar,
    lease_until timestamptz,
    dispatched_at timestamptz,
    dispatch_no integer DEFAULT 0 NOT NULL,
    last_error varchar,
    correlation_id varchar NOT NULL,
    cause_event_id varchar,
    created_at timestamptz DEFAULT now() NOT NULL,
    started_at timestamptz,
    finished_at timestamptz,
    id varchar NOT NULL,
    CONSTRAINT pk_work PRIMARY KEY (id),
    CONSTRAINT uq_work_kind_dedupe_key UNIQUE (kind, dedupe_key)
);
CREATE INDEX ix_work_finished ON work (finished_at) WHERE state IN ('done', 'dead', 'cancelled');
CREATE INDEX ix_work_lease_token ON work (lease_token) WHERE state = 'leased';
CREATE INDEX ix_work_leased ON work (lease_until) WHERE state = 'leased';
CREATE INDEX ix_work_ref_id ON work (ref_id);
CREATE INDEX ix_work_lane ON work (kind, lane, run_at)
    WHERE lane IS NOT NULL AND state IN ('pending', 'leased');
CREATE INDEX ix_work_pending_in_lane ON work (kind, run_at)
    WHERE state = 'pending' AND lane IS NOT NULL;
CREATE INDEX ix_work_cause_event_id ON work (cause_event_id)
    WHERE cause_event_id IS NOT NULL AND state IN ('pending', 'leased');
CREATE INDEX ix_work_correlation_id ON work (correlation_id, finished_at);
CREATE INDEX ix_work_pending ON work (kind, dispatched_at, run_at)
    WHERE state = 'pending' AND lane IS NULL;
-- Each row is updated twice and stays for a week. By default, vacuum would wait for the dead rows
-- of more than a day, all of them in the indexes of pending and leased work.
ALTER TABLE work SET (
    autovacuum_vacuum_scale_factor = 0.01,
    autovacuum_vacuum_threshold = 1000,
    autovacuum_analyze_scale_factor = 0.02
);

CREATE TABLE idempotency_keys (
    id varchar NOT NULL,
    fingerprint varchar NOT NULL,
    status integer,
    media_type varchar,
    body bytea,
    holder varchar,
    renewed_at timestamptz,
    created_at timestamptz DEFAULT now() NOT NULL,
    CONSTRAINT pk_idempotency_keys PRIMARY KEY (id)
);
CREATE INDEX ix_idempotency_keys_created_at ON idempotency_keys (created_at);

CREATE TABLE attempts (
    id varchar NOT NULL,
    failures integer DEFAULT 0 NOT NULL,
    since timestamptz NOT NULL,
    blocked_until timestamptz,
    CONSTRAINT pk_attempts PRIMARY KEY (id)
);
CREATE INDEX ix_attempts_since ON attempts (since);

CREATE TABLE instance_state (
    key varchar NOT NULL,
    number bigint DEFAULT 0 NOT NULL,
    value varchar,
    CONSTRAINT pk_instance_state PRIMARY KEY (key)
);

-- Mail.

CREATE TABLE mail_messages (
    recipient varchar NOT NULL,
    subject varchar NOT NULL,
    body bytea,
    sent_at timestamptz,
    tenant_id varchar NOT NULL,
    id varchar NOT NULL,
    created_at timestamptz DEFAULT now() NOT NULL,
    updated_at timestamptz DEFAULT now() NOT NULL,
    CONSTRAINT pk_mail_messages PRIMARY KEY (id)
);
CREATE INDEX ix_mail_messages_created_at ON mail_messages (created_at);

-- Files.

CREATE TABLE files (
    key varchar NOT NULL,
    purpose varchar DEFAULT 'upload' NOT NULL,
    owner_id varchar,
    filename varchar NOT NULL,
    size_bytes bigint NOT NULL,
    mime_type varchar NOT NULL,
    sha256 varchar NOT NULL,
    created_by varchar,
    created_at timestamptz DEFAULT now() NOT NULL,
    tenant_id varchar NOT NULL,
    id varchar NOT NULL,
    CONSTRAINT pk_files PRIMARY KEY (id),
    CONSTRAINT uq_files_key UNIQUE (key)
);
CREATE INDEX ix_files_tenant_id_purpose ON files (tenant_id, purpose, created_at, id);
CREATE INDEX ix_files_listed_created_at ON files (tenant_id, created_at, id)
    WHERE purpose IN ('upload', 'form');
CREATE INDEX ix_files_listed_filename ON files (tenant_id, filename, id)
    WHERE purpose IN ('upload', 'form');
CREATE INDEX ix_files_listed_size_bytes ON files (tenant_id, size_bytes, id)
    WHERE purpose IN ('upload', 'form');
CREATE INDEX ix_files_listed_mime_type ON files (tenant_id, mime_type, id)
    WHERE purpose IN ('upload', 'form');
CREATE INDEX ix_files_listed_type_created_at ON files (tenant_id, mime_type, created_at, id)
    WHERE purpose IN ('upload', 'form');
CREATE INDEX ix_files_listed ON files (created_at, id) WHERE purpose IN ('upload', 'form');
CREATE INDEX ix_files_owner_id ON files (owner_id) WHERE owner_id IS NOT NULL;
-- Most tenants with many files have many of one purpose: estimated totals must not take both for
-- independent.
CREATE STATISTICS files_purposes (mcv) ON tenant_id, purpose FROM files;

-- Storage: what each tenant stores.

CREATE TABLE storage_usage (
    tenant_id varchar NOT NULL,
    used_bytes bigint DEFAULT 0 NOT NULL,
    file_count bigint DEFAULT 0 NOT NULL,
    other_bytes bigint DEFAULT 0 NOT NULL,
    warned_percent smallint DEFAULT 0 NOT NULL,
    CONSTRAINT pk_storage_usage PRIMARY KEY (tenant_id)
);

CREATE TABLE storage_kinds (
    tenant_id varchar NOT NULL,
    kind varchar NOT NULL,
    bytes bigint DEFAULT 0 NOT NULL,
    CONSTRAINT pk_storage_kinds PRIMARY KEY (tenant_id, kind)
);

CREATE TABLE storage_changes (
    id bigint GENERATED ALWAYS AS IDENTITY NOT NULL,
    tenant_id varchar NOT NULL,
    kind varchar NOT NULL,
    bytes bigint NOT NULL,
    CONSTRAINT pk_storage_changes PRIMARY KEY (id)
);

-- ---------------------------------------------------------------------------------------- Identity

-- Tenants.

CREATE TABLE tenants (
    name varchar NOT NULL,
    plan varchar NOT NULL,
    limits jsonb DEFAULT '{}' NOT NULL,
    id varchar NOT NULL,
    created_at timestamptz DEFAULT now() NOT NULL,
    updated_at timestamptz DEFAULT now() NOT NULL,
    CONSTRAINT pk_tenants PRIMARY KEY (id)
);

-- Accounts: users, their sessions and tokens, invitations.

CREATE TABLE users (
    email varchar NOT NULL,
    first_name varchar NOT NULL,
    last_name varchar NOT NULL,
    password_hash varchar NOT NULL,
    role varchar NOT NULL,
    status varchar DEFAULT 'active' NOT NULL,
    email_verified boolean DEFAULT false NOT NULL,
    mfa_enabled boolean DEFAULT false NOT NULL,
    last_login_at timestamptz,
    timezone varchar DEFAULT 'UTC' NOT NULL,
    language varchar DEFAULT 'en' NOT NULL,
    avatar_key varchar,
    avatar_type varchar,
    tenant_id varchar NOT NULL,
    id varchar NOT NULL,
    created_at timestamptz DEFAULT now() NOT NULL,
    updated_at timestamptz DEFAULT now() NOT NULL,
    CONSTRAINT pk_users PRIMARY KEY (id),
    CONSTRAINT uq_users_avatar_key UNIQUE (avatar_key),
    CONSTRAINT fk_users_tenant_id_tenants
        FOREIGN KEY (tenant_id) REFERENCES tenants (id) ON DELETE CASCADE
);
CREATE INDEX ix_users_tenant_id_created_at ON users (tenant_id, created_at, id);
CREATE UNIQUE INDEX uq_users_email ON users (lower(email));

CREATE TABLE sessions (
    user_id varchar NOT NULL,
    refresh_jti varchar NOT NULL,
    expires_at timestamptz NOT NULL,
    ended_at timestamptz,
    spent jsonb DEFAULT '[]' NOT NULL,
    code_shown_at timestamptz,
    ip_address varchar,
    user_agent varchar,
    last_seen_at timestamptz DEFAULT now() NOT NULL,
    tenant_id varchar NOT NULL,
    id varchar NOT NULL,
    created_at timestamptz DEFAULT now() NOT NULL,
    updated_at timestamptz DEFAULT now() NOT NULL,
    CONSTRAINT pk_sessions PRIMARY KEY (id),
    CONSTRAINT fk_sessions_tenant_id_tenants
        FOREIGN KEY (tenant_id) REFERENCES tenants (id) ON DELETE CASCADE,
    CONSTRAINT fk_sessions_user_id_users
        FOREIGN KEY (user_id) REFERENCES users (id) ON DELETE CASCADE
);
CREATE INDEX ix_sessions_user_id ON sessions (user_id);
CREATE INDEX ix_sessions_expires_at ON sessions (expires_at);

CREATE TABLE one_time_tokens (
    user_id varchar NOT NULL,
    purpose varchar NOT NULL,
    token_hash varchar NOT NULL,
    tries integer DEFAULT 0 NOT NULL,
    expires_at timestamptz NOT NULL,
    used_at timestamptz,
    tenant_id varchar NOT NULL,
    id varchar NOT NULL,
    created_at timestamptz DEFAULT now() NOT NULL,
    updated_at timestamptz DEFAULT now() NOT NULL,
    CONSTRAINT pk_one_time_tokens PRIMARY KEY (id),
    CONSTRAINT uq_one_time_tokens_token_hash UNIQUE (token_hash),
    CONSTRAINT fk_one_time_tokens_tenant_id_tenants
        FOREIGN KEY (tenant_id) REFERENCES tenants (id) ON DELETE CASCADE,
    CONSTRAINT fk_one_time_tokens_user_id_users
        FOREIGN KEY (user_id) REFERENCES users (id) ON DELETE CASCADE
);
CREATE INDEX ix_one_time_tokens_expires_at ON one_time_tokens (expires_at);
CREATE INDEX ix_one_time_tokens_user_id ON one_time_tokens (user_id, purpose);

CREATE TABLE invitations (
    email varchar NOT NULL,
    role varchar NOT NULL,
    token_hash varchar NOT NULL,
    invited_by varchar,
    expires_at timestamptz NOT NULL,
    used_at timestamptz,
    tenant_id varchar NOT NULL,
    id varchar NOT NULL,
    created_at timestamptz DEFAULT now() NOT NULL,
    updated_at timestamptz DEFAULT now() NOT NULL,
    CONSTRAINT pk_invitations PRIMARY KEY (id),
    CONSTRAINT uq_invitations_token_hash UNIQUE (token_hash),
    CONSTRAINT fk_invitations_invited_by_users
        FOREIGN KEY (invited_by) REFERENCES users (id) ON DELETE SET NULL,
    CONSTRAINT fk_invitations_tenant_id_tenants
        FOREIGN KEY (tenant_id) REFERENCES tenants (id) ON DELETE CASCADE
);
CREATE INDEX ix_invitations_tenant_id ON invitations (tenant_id, created_at);
CREATE INDEX ix_invitations_invited_by ON invitations (invited_by);
CREATE INDEX ix_invitations_email ON invitations (lower(email));
CREATE INDEX ix_invitations_expires_at ON invitations (expires_at);

-- Multi-factor authentication.

CREATE TABLE mfa_devices (
    user_id varchar NOT NULL,
    name varchar NOT NULL,
    secret bytea NOT NULL,
    used_steps bigint[] DEFAULT '{}' NOT NULL,
    confirmed_at timestamptz,
    last_used_at timestamptz,
    tenant_id varchar NOT NULL,
    id varchar NOT NULL,
    created_at timestamptz DEFAULT now() NOT NULL,
    updated_at timestamptz DEFAULT now() NOT NULL,
    CONSTRAINT pk_mfa_devices PRIMARY KEY (id),
    CONSTRAINT fk_mfa_devices_tenant_id_tenants
        FOREIGN KEY (tenant_id) REFERENCES tenants (id) ON DELETE CASCADE,
    CONSTRAINT fk_mfa_devices_user_id_users
        FOREIGN KEY (user_id) REFERENCES users (id) ON DELETE CASCADE
);
CREATE INDEX ix_mfa_devices_user_id ON mfa_devices (user_id);

CREATE TABLE recovery_codes (
    user_id varchar NOT NULL,
    code_hash varchar NOT NULL,
    is_pending boolean DEFAULT false NOT NULL,
    used_at timestamptz,
    tenant_id varchar NOT NULL,
    id varchar NOT NULL,
    CONSTRAINT pk_recovery_codes PRIMARY KEY (id),
    CONSTRAINT fk_recovery_codes_tenant_id_tenants
        FOREIGN KEY (tenant_id) REFERENCES tenants (id) ON DELETE CASCADE,
    CONSTRAINT fk_recovery_codes_user_id_users
        FOREIGN KEY (user_id) REFERENCES users (id) ON DELETE CASCADE
);
CREATE INDEX ix_recovery_codes_user_id ON recovery_codes (user_id);

-- Roles.

CREATE TABLE role_grants (
    role varchar NOT NULL,
    permission varchar NOT NULL,
    CONSTRAINT pk_role_grants PRIMARY KEY (role, permission)
);

-- --------------------------------------------------------------------------------------- Messaging

-- Webhooks and the deliveries of events to them.

CREATE TABLE webhooks (
    subscription_id varchar,
    url varchar NOT NULL,
    events varchar[] NOT NULL,
    active boolean DEFAULT true NOT NULL,
    description varchar DEFAULT '' NOT NULL,
    keys bytea NOT NULL,
    previous_until timestamptz,
    failing_since timestamptz,
    disabled_reason varchar,
    created_by varchar,
    tenant_id varchar NOT NULL,
    id varchar NOT NULL,
    created_at timestamptz DEFAULT now() NOT NULL,
    updated_at timestamptz DEFAULT now() NOT NULL,
    CONSTRAINT pk_webhooks PRIMARY KEY (id),
    CONSTRAINT uq_webhooks_subscription_id UNIQUE (subscription_id),
    CONSTRAINT fk_webhooks_tenant_id_tenants
        FOREIGN KEY (tenant_id) REFERENCES tenants (id) ON DELETE CASCADE
);
CREATE INDEX ix_webhooks_active ON webhooks (tenant_id) WHERE active AND subscription_id IS NULL;
CREATE INDEX ix_webhooks_tenant_id_created_at ON webhooks (tenant_id, created_at, id);

CREATE TABLE deliveries (
    tenant_id varchar NOT NULL,
    webhook_id varchar NOT NULL,
    event_id varchar NOT NULL,
    event_type varchar NOT NULL,
    status varchar DEFAULT 'pending' NOT NULL,
    attempt integer DEFAULT 0 NOT NULL,
    response_code integer,
    response_time_ms integer,
    error varchar,
    work_id varchar NOT NULL,
    correlation_id varchar NOT NULL,
    created_at timestamptz DEFAULT now() NOT NULL,
    next_attempt_at timestamptz,
    finished_at timestamptz,
    id varchar NOT NULL,
    CONSTRAINT pk_deliveries PRIMARY KEY (id),
    CONSTRAINT uq_deliveries_event_id_webhook_id UNIQUE (event_id, webhook_id),
    CONSTRAINT fk_deliveries_event_id_event_log
        FOREIGN KEY (event_id) REFERENCES event_log (id) ON DELETE CASCADE,
    CONSTRAINT fk_deliveries_webhook_id_webhooks
        FOREIGN KEY (webhook_id) REFERENCES webhooks (id) ON DELETE CASCADE
);
CREATE INDEX ix_deliveries_correlation_id ON deliveries (tenant_id, correlation_id);
CREATE INDEX ix_deliveries_status ON deliveries (webhook_id, status, created_at, id);
CREATE INDEX ix_deliveries_tenant_id_created_at ON deliveries (tenant_id, created_at)
    WHERE status <> 'pending';

CREATE TABLE delivery_attempts (
    tenant_id varchar NOT NULL,
    delivery_id varchar NOT NULL,
    number integer NOT NULL,
    url varchar NOT NULL,
    response_code integer,
    response_time_ms integer NOT NULL,
    response_body varchar,
    error varchar,
    created_at timestamptz DEFAULT now() NOT NULL,
    CONSTRAINT pk_delivery_attempts PRIMARY KEY (delivery_id, number),
    CONSTRAINT fk_delivery_attempts_delivery_id_deliveries
        FOREIGN KEY (delivery_id) REFERENCES deliveries (id) ON DELETE CASCADE
);

-- Notifications: channels, messages, the notification center, deliveries, digests.

CREATE TABLE notification_channels (
    name varchar NOT NULL,
    type varchar NOT NULL,
    provider varchar NOT NULL,
    config bytea NOT NULL,
    active boolean DEFAULT true NOT NULL,
    rate_limit_per_minute integer,
    created_by varchar,
    deleted_at timestamptz,
    tenant_id varchar NOT NULL,
    id varchar NOT NULL,
    created_at timestamptz DEFAULT now() NOT NULL,
    updated_at timestamptz DEFAULT now() NOT NULL,
    CONSTRAINT pk_notification_channels PRIMARY KEY (id),
    CONSTRAINT fk_notification_channels_tenant_id_tenants
        FOREIGN KEY (tenant_id) REFERENCES tenants (id) ON DELETE CASCADE
);
CREATE INDEX ix_notification_channels_deleted_at ON notification_channels (deleted_at)
    WHERE deleted_at IS NOT NULL;
CREATE INDEX ix_notification_channels_type
    ON notification_channels (tenant_id, type, created_at, id);

CREATE TABLE notification_messages (
    type varchar NOT NULL,
    title varchar NOT NULL,
    message varchar NOT NULL,
    data jsonb NOT NULL,
    recipients jsonb NOT NULL,
    occasion varchar NOT NULL,
    source varchar NOT NULL,
    dispatched_to varchar DEFAULT '' NOT NULL,
    team_chat jsonb,
    is_mailed boolean DEFAULT false NOT NULL,
    correlation_id varchar NOT NULL,
    created_by varchar,
    created_at timestamptz DEFAULT now() NOT NULL,
    tenant_id varchar NOT NULL,
    id varchar NOT NULL,
    CONSTRAINT pk_notification_messages PRIMARY KEY (id),
    CONSTRAINT uq_notification_messages_occasion_source UNIQUE (occasion, source),
    CONSTRAINT fk_notification_messages_tenant_id_tenants
        FOREIGN KEY (tenant_id) REFERENCES tenants (id) ON DELETE CASCADE
);
CREATE INDEX ix_notification_messages_created_at ON notification_messages (created_at);
CREATE INDEX ix_notification_messages_tenant_id ON notification_messages (tenant_id);
CREATE INDEX ix_notification_messages_digest ON notification_messages (source)
    WHERE starts_with(source, 'ntg_');

CREATE TABLE notifications (
    tenant_id varchar NOT NULL,
    user_id varchar NOT NULL,
    message_id varchar NOT NULL,
    type varchar NOT NULL,
    read boolean DEFAULT false NOT NULL,
    created_at timestamptz DEFAULT now() NOT NULL,
    id varchar NOT NULL,
    CONSTRAINT pk_notifications PRIMARY KEY (id),
    CONSTRAINT uq_notifications_message_id_user_id UNIQUE (message_id, user_id),
    CONSTRAINT fk_notifications_message_id_notification_messages
        FOREIGN KEY (message_id) REFERENCES notification_messages (id) ON DELETE CASCADE,
    CONSTRAINT fk_notifications_user_id_users
        FOREIGN KEY (user_id) REFERENCES users (id) ON DELETE CASCADE
);
CREATE INDEX ix_notifications_user_id_created_at ON notifications (user_id, created_at, id)
    INCLUDE (tenant_id);
CREATE INDEX ix_notifications_user_id_type ON notifications (user_id, type, read, created_at, id)
    INCLUDE (tenant_id);

CREATE TABLE notification_preferences (
    user_id varchar NOT NULL,
    tenant_id varchar NOT NULL,
    preferences jsonb NOT NULL,
    created_at timestamptz DEFAULT now() NOT NULL,
    updated_at timestamptz DEFAULT now() NOT NULL,
    CONSTRAINT pk_notification_preferences PRIMARY KEY (user_id),
    CONSTRAINT fk_notification_preferences_user_id_users
        FOREIGN KEY (user_id) REFERENCES users (id) ON DELETE CASCADE
);

CREATE TABLE notification_deliveries (
    tenant_id varchar NOT NULL,
    message_id varchar NOT NULL,
    channel_id varchar NOT NULL,
    user_id varchar,
    first_id varchar NOT NULL,
    occasion varchar NOT NULL,
    recipient varchar NOT NULL,
    status varchar DEFAULT 'pending' NOT NULL,
    attempt integer DEFAULT 0 NOT NULL,
    throttled_at timestamptz,
    is_test boolean DEFAULT false NOT NULL,
    work_id varchar NOT NULL,
    correlation_id varchar NOT NULL,
    created_at timestamptz DEFAULT now() NOT NULL,
    finished_at timestamptz,
    id varchar NOT NULL,
    CONSTRAINT pk_notification_deliveries PRIMARY KEY (id),
    CONSTRAINT uq_notification_deliveries_occasion_channel_id_recipient
        UNIQUE (occasion, channel_id, recipient),
    CONSTRAINT fk_notification_deliveries_channel_id_notification_channels
        FOREIGN KEY (channel_id) REFERENCES notification_channels (id) ON DELETE CASCADE,
    CONSTRAINT fk_notification_deliveries_message_id_notification_messages
        FOREIGN KEY (message_id) REFERENCES notification_messages (id) ON DELETE CASCADE
);
CREATE INDEX ix_notification_deliveries_channel_id ON notification_deliveries (channel_id, status);
CREATE INDEX ix_notification_deliveries_correlation_id
    ON notification_deliveries (tenant_id, correlation_id);
CREATE INDEX ix_notification_deliveries_first_id ON notification_deliveries (first_id);
CREATE INDEX ix_notification_deliveries_message_id ON notification_deliveries (message_id);

CREATE TABLE notification_log (
    tenant_id varchar NOT NULL,
    channel_id varchar NOT NULL,
    delivery_id varchar NOT NULL,
    number integer NOT NULL,
    status varchar DEFAULT 'pending' NOT NULL,
    delivery_time_ms integer,
    error_code varchar,
    error varchar,
    created_at timestamptz DEFAULT now() NOT NULL,
    id varchar NOT NULL,
    CONSTRAINT pk_notification_log PRIMARY KEY (id),
    CONSTRAINT uq_notification_log_delivery_id_number UNIQUE (delivery_id, number),
    CONSTRAINT fk_notification_log_delivery_id_notification_deliveries
        FOREIGN KEY (delivery_id) REFERENCES notification_deliveries (id) ON DELETE CASCADE
);
CREATE INDEX ix_notification_log_channel_id
    ON notification_log (channel_id, status, created_at, id);

CREATE TABLE notification_channel_days (
    tenant_id varchar NOT NULL,
    channel_id varchar NOT NULL,
    day date NOT NULL,
    delivered integer DEFAULT 0 NOT NULL,
    failed integer DEFAULT 0 NOT NULL,
    total_ms bigint DEFAULT 0 NOT NULL,
    CONSTRAINT pk_notification_channel_days PRIMARY KEY (channel_id, day),
    CONSTRAINT fk_notification_channel_days_channel_id_notification_channels
        FOREIGN KEY (channel_id) REFERENCES notification_channels (id) ON DELETE CASCADE
);

CREATE TABLE notification_digests (
    user_id varchar,
    type varchar NOT NULL,
    channel_type varchar NOT NULL,
    due_at timestamptz NOT NULL,
    sent_at timestamptz,
    tenant_id varchar NOT NULL,
    id varchar NOT NULL,
    CONSTRAINT pk_notification_digests PRIMARY KEY (id),
    CONSTRAINT fk_notification_digests_tenant_id_tenants
        FOREIGN KEY (tenant_id) REFERENCES tenants (id) ON DELETE CASCADE,
    CONSTRAINT fk_notification_digests_user_id_users
        FOREIGN KEY (user_id) REFERENCES users (id) ON DELETE CASCADE
);
CREATE INDEX ix_notification_digests_due_at ON notification_digests (due_at);
CREATE INDEX ix_notification_digests_tenant_id ON notification_digests (tenant_id);
CREATE INDEX ix_notification_digests_user_id ON notification_digests (user_id);
CREATE UNIQUE INDEX uq_notification_digests_due
    ON notification_digests (tenant_id, coalesce(user_id, ''), type, channel_type, due_at)
    WHERE sent_at IS NULL;

CREATE TABLE notification_digest_items (
    tenant_id varchar NOT NULL,
    digest_id varchar NOT NULL,
    message_id varchar NOT NULL,
    CONSTRAINT pk_notification_digest_items PRIMARY KEY (digest_id, message_id),
    CONSTRAINT fk_notification_digest_items_digest_id_notification_digests
        FOREIGN KEY (digest_id) REFERENCES notification_digests (id) ON DELETE CASCADE,
    CONSTRAINT fk_notification_digest_items_message_id_notification_messages
        FOREIGN KEY (message_id) REFERENCES notification_messages (id) ON DELETE CASCADE
);
CREATE INDEX ix_notification_digest_items_message_id ON notification_digest_items (message_id);

-- ------------------------------------------------------------------------------------------ Agents

-- Models: keys of their providers.

CREATE TABLE provider_keys (
    provider varchar NOT NULL,
    name varchar NOT NULL,
    api_key bytea NOT NULL,
    key_hint varchar NOT NULL,
    base_url varchar,
    is_default boolean DEFAULT false NOT NULL,
    tenant_id varchar NOT NULL,
    id varchar NOT NULL,
    created_at timestamptz DEFAULT now() NOT NULL,
    updated_at timestamptz DEFAULT now() NOT NULL,
    CONSTRAINT pk_provider_keys PRIMARY KEY (id),
    CONSTRAINT fk_provider_keys_tenant_id_tenants
        FOREIGN KEY (tenant_id) REFERENCES tenants (id) ON DELETE CASCADE
);
CREATE INDEX ix_provider_keys_tenant_id ON provider_keys (tenant_id, created_at);
CREATE UNIQUE INDEX uq_provider_keys_default ON provider_keys (tenant_id, provider)
    WHERE is_default;

-- Agents, their versions and sub-agents.

CREATE TABLE agents (
    name varchar NOT NULL,
    description varchar DEFAULT '' NOT NULL,
    primary_model varchar NOT NULL,
    provider varchar NOT NULL,
    system_prompt varchar NOT NULL,
    temperature double precision DEFAULT '0.7' NOT NULL,
    max_tokens integer DEFAULT 2048 NOT NULL,
    status varchar DEFAULT 'draft' NOT NULL,
    version integer DEFAULT 1 NOT NULL,
    parent_id varchar,
    log_messages boolean DEFAULT true NOT NULL,
    log_tool_calls boolean DEFAULT true NOT NULL,
    log_token_usage boolean DEFAULT true NOT NULL,
    retention_days integer DEFAULT 365 NOT NULL,
    tenant_id varchar NOT NULL,
    id varchar NOT NULL,
    created_at timestamptz DEFAULT now() NOT NULL,
    updated_at timestamptz DEFAULT now() NOT NULL,
    CONSTRAINT pk_agents PRIMARY KEY (id),
    CONSTRAINT fk_agents_parent_id_agents
        FOREIGN KEY (parent_id) REFERENCES agents (id) ON DELETE CASCADE,
    CONSTRAINT fk_agents_tenant_id_tenants
        FOREIGN KEY (tenant_id) REFERENCES tenants (id) ON DELETE CASCADE
);
CREATE INDEX ix_agents_parent_id ON agents (parent_id);
CREATE INDEX ix_agents_tenant_id_created_at ON agents (tenant_id, created_at, id)
    WHERE parent_id IS NULL;

CREATE TABLE agent_versions (
    agent_id varchar NOT NULL,
    version integer NOT NULL,
    primary_model varchar NOT NULL,
    system_prompt varchar NOT NULL,
    temperature double precision NOT NULL,
    max_tokens integer NOT NULL,
    created_by varchar,
    created_at timestamptz DEFAULT now() NOT NULL,
    tenant_id varchar NOT NULL,
    id varchar NOT NULL,
    CONSTRAINT pk_agent_versions PRIMARY KEY (id),
    CONSTRAINT uq_agent_versions_agent_id UNIQUE (agent_id, version),
    CONSTRAINT fk_agent_versions_agent_id_agents
        FOREIGN KEY (agent_id) REFERENCES agents (id) ON DELETE CASCADE,
    CONSTRAINT fk_agent_versions_tenant_id_tenants
        FOREIGN KEY (tenant_id) REFERENCES tenants (id) ON DELETE CASCADE
);

CREATE TABLE sub_agents (
    agent_id varchar NOT NULL,
    child_id varchar NOT NULL,
    relationship_type varchar NOT NULL,
    is_enabled boolean DEFAULT true NOT NULL,
    delegation_prompt varchar DEFAULT '' NOT NULL,
    tenant_id varchar NOT NULL,
    id varchar NOT NULL,
    created_at timestamptz DEFAULT now() NOT NULL,
    updated_at timestamptz DEFAULT now() NOT NULL,
    CONSTRAINT pk_sub_agents PRIMARY KEY (id),
    CONSTRAINT uq_sub_agents_agent_id_child_id UNIQUE (agent_id, child_id),
    CONSTRAINT fk_sub_agents_agent_id_agents
        FOREIGN KEY (agent_id) REFERENCES agents (id) ON DELETE CASCADE,
    CONSTRAINT fk_sub_agents_child_id_agents
        FOREIGN KEY (child_id) REFERENCES agents (id) ON DELETE CASCADE,
    CONSTRAINT fk_sub_agents_tenant_id_tenants
        FOREIGN KEY (tenant_id) REFERENCES tenants (id) ON DELETE CASCADE
);
CREATE INDEX ix_sub_agents_child_id ON sub_agents (child_id);

-- Vault: credentials, who may use them, and the audit trail.

CREATE TABLE credentials (
    name varchar NOT NULL,
    type varchar NOT NULL,
    description varchar DEFAULT '' NOT NULL,
    secrets bytea NOT NULL,
    secret_keys text[] NOT NULL,
    metadata jsonb NOT NULL,
    is_valid boolean DEFAULT true NOT NULL,
    last_tested_at timestamptz,
    last_used_at timestamptz,
    secrets_version integer DEFAULT 1 NOT NULL,
    token_expires_at timestamptz,
    refresh_holder varchar,
    refresh_until timestamptz,
    tenant_id varchar NOT NULL,
    id varchar NOT NULL,
    created_at timestamptz DEFAULT now() NOT NULL,
    updated_at timestamptz DEFAULT now() NOT NULL,
    CONSTRAINT pk_credentials PRIMARY KEY (id),
    CONSTRAINT fk_credentials_tenant_id_tenants
        FOREIGN KEY (tenant_id) REFERENCES tenants (id) ON DELETE CASCADE
);
CREATE INDEX ix_credentials_tenant_id_created_at ON credentials (tenant_id, created_at, id);

CREATE TABLE credential_access (
    credential_id varchar NOT NULL,
    integration_type varchar NOT NULL,
    integration_id varchar NOT NULL,
    created_by varchar,
    created_at timestamptz DEFAULT now() NOT NULL,
    tenant_id varchar NOT NULL,
    id varchar NOT NULL,
    CONSTRAINT pk_credential_access PRIMARY KEY (id),
    CONSTRAINT uq_credential_access UNIQUE (credential_id, integration_type, integration_id),
    CONSTRAINT fk_credential_access_credential_id_credentials
        FOREIGN KEY (credential_id) REFERENCES credentials (id) ON DELETE CASCADE,
    CONSTRAINT fk_credential_access_tenant_id_tenants
        FOREIGN KEY (tenant_id) REFERENCES tenants (id) ON DELETE CASCADE
);
CREATE INDEX ix_credential_access_integration
    ON credential_access (integration_type, integration_id);

CREATE TABLE credential_audit_chains (
    key bytea NOT NULL,
    seq bigint NOT NULL,
    mac bytea NOT NULL,
    seal bytea NOT NULL,
    tenant_id varchar NOT NULL,
    id varchar NOT NULL,
    CONSTRAINT pk_credential_audit_chains PRIMARY KEY (id),
    CONSTRAINT uq_credential_audit_chains_tenant_id UNIQUE (tenant_id),
    CONSTRAINT fk_credential_audit_chains_tenant_id_tenants
        FOREIGN KEY (tenant_id) REFERENCES tenants (id) ON DELETE CASCADE
);

CREATE TABLE credential_audit (
    seq bigint NOT NULL,
    credential_id varchar NOT NULL,
    action varchar NOT NULL,
    actor_id varchar,
    actor_type varchar NOT NULL,
    integration varchar,
    ip_address varchar,
    success boolean NOT NULL,
    created_at timestamptz NOT NULL,
    mac bytea NOT NULL,
    tenant_id varchar NOT NULL,
    id varchar NOT NULL,
    CONSTRAINT pk_credential_audit PRIMARY KEY (id),
    CONSTRAINT uq_credential_audit_tenant_id_seq UNIQUE (tenant_id, seq),
    CONSTRAINT fk_credential_audit_tenant_id_tenants
        FOREIGN KEY (tenant_id) REFERENCES tenants (id) ON DELETE CASCADE
);
CREATE INDEX ix_credential_audit_credential_id ON credential_audit (credential_id, seq);

-- Tools, the tools of agents, and executions.

CREATE TABLE tools (
    name varchar NOT NULL,
    slug varchar NOT NULL,
    description varchar DEFAULT '' NOT NULL,
    category varchar NOT NULL,
    tool_type varchar NOT NULL,
    config json NOT NULL,
    auth_type varchar NOT NULL,
    auth_config bytea,
    input_schema json,
    output_schema json,
    is_enabled boolean DEFAULT true NOT NULL,
    usage_count bigint DEFAULT 0 NOT NULL,
    last_used_at timestamptz,
    tenant_id varchar NOT NULL,
    id varchar NOT NULL,
    created_at timestamptz DEFAULT now() NOT NULL,
    updated_at timestamptz DEFAULT now() NOT NULL,
    CONSTRAINT pk_tools PRIMARY KEY (id),
    CONSTRAINT uq_tools_tenant_id_slug UNIQUE (tenant_id, slug),
    CONSTRAINT fk_tools_tenant_id_tenants
        FOREIGN KEY (tenant_id) REFERENCES tenants (id) ON DELETE CASCADE
);
CREATE INDEX ix_tools_tenant_id_created_at ON tools (tenant_id, created_at, id);

CREATE TABLE agent_tools (
    agent_id varchar NOT NULL,
    tool_id varchar NOT NULL,
    is_enabled boolean DEFAULT true NOT NULL,
    display_order integer DEFAULT 0 NOT NULL,
    config_override json,
    override_auth bytea,
    attached_at timestamptz DEFAULT now() NOT NULL,
    tenant_id varchar NOT NULL,
    id varchar NOT NULL,
    CONSTRAINT pk_agent_tools PRIMARY KEY (id),
    CONSTRAINT uq_agent_tools_agent_id_tool_id UNIQUE (agent_id, tool_id),
    CONSTRAINT fk_agent_tools_agent_id_agents
        FOREIGN KEY (agent_id) REFERENCES agents (id) ON DELETE CASCADE,
    CONSTRAINT fk_agent_tools_tenant_id_tenants
        FOREIGN KEY (tenant_id) REFERENCES tenants (id) ON DELETE CASCADE,
    CONSTRAINT fk_agent_tools_tool_id_tools
        FOREIGN KEY (tool_id) REFERENCES tools (id) ON DELETE CASCADE
);
CREATE INDEX ix_agent_tools_tool_id ON agent_tools (tool_id);

CREATE TABLE tool_executions (
    tool_id varchar NOT NULL,
    agent_id varchar,
    call_id varchar,
    work_id varchar NOT NULL,
    status varchar DEFAULT 'pending' NOT NULL,
    input json NOT NULL,
    output json,
    error_code varchar,
    error_message varchar,
    execution_time_ms integer DEFAULT 0 NOT NULL,
    correlation_id varchar NOT NULL,
    executed_at timestamptz DEFAULT now() NOT NULL,
    finished_at timestamptz,
    tenant_id varchar NOT NULL,
    id varchar NOT NULL,
    CONSTRAINT pk_tool_executions PRIMARY KEY (id),
    CONSTRAINT uq_tool_executions_tenant_id_call_id UNIQUE (tenant_id, call_id),
    CONSTRAINT fk_tool_executions_tenant_id_tenants
        FOREIGN KEY (tenant_id) REFERENCES tenants (id) ON DELETE CASCADE,
    CONSTRAINT fk_tool_executions_tool_id_tools
        FOREIGN KEY (tool_id) REFERENCES tools (id) ON DELETE CASCADE
);
CREATE INDEX ix_tool_executions_tenant_id_correlation_id
    ON tool_executions (tenant_id, correlation_id);
CREATE INDEX ix_tool_executions_tool_id ON tool_executions (tool_id, executed_at, id);
CREATE INDEX ix_tool_executions_content ON tool_executions (tenant_id, agent_id, executed_at)
    WHERE input::text <> '{}' OR output IS NOT NULL OR error_message IS NOT NULL;
CREATE INDEX ix_tool_executions_tenant_id_executed_at ON tool_executions (tenant_id, executed_at);

-- Web search.

CREATE TABLE web_search_configs (
    agent_id varchar NOT NULL,
    enabled boolean NOT NULL,
    search_engine varchar NOT NULL,
    max_results integer NOT NULL,
    safe_search boolean NOT NULL,
    tenant_id varchar NOT NULL,
    CONSTRAINT pk_web_search_configs PRIMARY KEY (agent_id),
    CONSTRAINT fk_web_search_configs_agent_id_agents
        FOREIGN KEY (agent_id) REFERENCES agents (id) ON DELETE CASCADE,
    CONSTRAINT fk_web_search_configs_tenant_id_tenants
        FOREIGN KEY (tenant_id) REFERENCES tenants (id) ON DELETE CASCADE
);

CREATE TABLE web_searches (
    tenant_id varchar NOT NULL,
    correlation_id varchar NOT NULL,
    engine varchar NOT NULL,
    status varchar NOT NULL,
    result_count integer,
    started_at timestamptz NOT NULL,
    duration_ms double precision NOT NULL,
    id varchar NOT NULL,
    CONSTRAINT pk_web_searches PRIMARY KEY (id)
);
CREATE INDEX ix_web_searches_correlation ON web_searches (tenant_id, correlation_id);
CREATE INDEX ix_web_searches_started_at ON web_searches (started_at);

-- Knowledge: documents and the vector tables of their chunks.

CREATE TABLE knowledge_bases (
    agent_id varchar NOT NULL,
    generation integer DEFAULT 1 NOT NULL,
    last_generation integer DEFAULT 1 NOT NULL,
    revision bigint DEFAULT 0 NOT NULL,
    embedding_model varchar NOT NULL,
    has_removed_chunks boolean DEFAULT false NOT NULL,
    maintain_at timestamptz,
    rebuild_after timestamptz,
    writer varchar,
    writer_until timestamptz,
    tenant_id varchar NOT NULL,
    CONSTRAINT pk_knowledge_bases PRIMARY KEY (agent_id),
    CONSTRAINT fk_knowledge_bases_agent_id_agents
        FOREIGN KEY (agent_id) REFERENCES agents (id) ON DELETE CASCADE,
    CONSTRAINT fk_knowledge_bases_tenant_id_tenants
        FOREIGN KEY (tenant_id) REFERENCES tenants (id) ON DELETE CASCADE
);
CREATE INDEX ix_knowledge_bases_tenant_id ON knowledge_bases (tenant_id);
CREATE INDEX ix_knowledge_bases_maintain_at ON knowledge_bases (maintain_at)
    WHERE maintain_at IS NOT NULL;

CREATE TABLE documents (
    agent_id varchar NOT NULL,
    name varchar NOT NULL,
    status varchar DEFAULT 'pending' NOT NULL,
    error varchar,
    mime_type varchar NOT NULL,
    size_bytes bigint NOT NULL,
    sha256 varchar,
    file_key varchar,
    version integer DEFAULT 1 NOT NULL,
    chunk_count integer DEFAULT 0 NOT NULL,
    work_id varchar,
    created_at timestamptz DEFAULT now() NOT NULL,
    processed_at timestamptz,
    deleted_at timestamptz,
    tenant_id varchar NOT NULL,
    id varchar NOT NULL,
    CONSTRAINT pk_documents PRIMARY KEY (id),
    CONSTRAINT fk_documents_agent_id_agents
        FOREIGN KEY (agent_id) REFERENCES agents (id) ON DELETE CASCADE,
    CONSTRAINT fk_documents_tenant_id_tenants
        FOREIGN KEY (tenant_id) REFERENCES tenants (id) ON DELETE CASCADE
);
CREATE INDEX ix_documents_tenant_id_agent_id ON documents (tenant_id, agent_id, created_at, id);
CREATE INDEX ix_documents_deleted ON documents (tenant_id, agent_id) WHERE deleted_at IS NOT NULL;
CREATE UNIQUE INDEX uq_documents_agent_id_name ON documents (agent_id, name)
    WHERE deleted_at IS NULL;

-- Usage: of models by turn, hour and day, and counts of requests and executions.

CREATE TABLE usage (
    tenant_id varchar NOT NULL,
    agent_id varchar NOT NULL,
    conversation_id varchar NOT NULL,
    message_id varchar NOT NULL,
    user_id varchar,
    source varchar NOT NULL,
    model varchar NOT NULL,
    prompt_tokens integer NOT NULL,
    completion_tokens integer NOT NULL,
    cost_usd numeric(18, 9) NOT NULL,
    turns integer NOT NULL,
    conversations integer NOT NULL,
    messages integer NOT NULL,
    response_time_ms integer NOT NULL,
    correlation_id varchar,
    rolled boolean DEFAULT false NOT NULL,
    created_at timestamptz DEFAULT now() NOT NULL,
    CONSTRAINT pk_usage PRIMARY KEY (message_id, model)
);
CREATE INDEX ix_usage_agent_id ON usage (agent_id, created_at);
CREATE INDEX ix_usage_not_rolled ON usage (tenant_id, agent_id) WHERE NOT rolled;
CREATE INDEX ix_usage_correlation_id ON usage (tenant_id, correlation_id);
CREATE INDEX ix_usage_created_at ON usage (created_at) WHERE rolled;

CREATE TABLE usage_hours (
    agent_id varchar NOT NULL,
    model varchar NOT NULL,
    hour timestamptz NOT NULL,
    prompt_tokens bigint NOT NULL,
    completion_tokens bigint NOT NULL,
    cost_usd numeric(18, 9) NOT NULL,
    turns bigint NOT NULL,
    conversations bigint NOT NULL,
    messages bigint NOT NULL,
    response_time_ms bigint NOT NULL,
    tenant_id varchar NOT NULL,
    CONSTRAINT pk_usage_hours PRIMARY KEY (agent_id, model, hour),
    CONSTRAINT fk_usage_hours_tenant_id_tenants
        FOREIGN KEY (tenant_id) REFERENCES tenants (id) ON DELETE CASCADE
);
CREATE INDEX ix_usage_hours_tenant_id ON usage_hours (tenant_id, hour);
CREATE INDEX ix_usage_hours_hour ON usage_hours (hour);

CREATE TABLE usage_days (
    agent_id varchar NOT NULL,
    model varchar NOT NULL,
    day date NOT NULL,
    prompt_tokens bigint NOT NULL,
    completion_tokens bigint NOT NULL,
    cost_usd numeric(18, 9) NOT NULL,
    conversations bigint NOT NULL,
    tenant_id varchar NOT NULL,
    CONSTRAINT pk_usage_days PRIMARY KEY (tenant_id, day, agent_id, model),
    CONSTRAINT fk_usage_days_tenant_id_tenants
        FOREIGN KEY (tenant_id) REFERENCES tenants (id) ON DELETE CASCADE
);
CREATE INDEX ix_usage_days_day ON usage_days (day);

CREATE TABLE usage_counts (
    tenant_id varchar NOT NULL,
    kind varchar NOT NULL,
    id varchar NOT NULL,
    agent_id varchar NOT NULL,
    created_at timestamptz DEFAULT now() NOT NULL,
    CONSTRAINT pk_usage_counts PRIMARY KEY (kind, id)
);
CREATE INDEX ix_usage_counts_tenant_id ON usage_counts (tenant_id);

CREATE TABLE usage_count_hours (
    kind varchar NOT NULL,
    agent_id varchar NOT NULL,
    hour timestamptz NOT NULL,
    amount bigint NOT NULL,
    tenant_id varchar NOT NULL,
    CONSTRAINT pk_usage_count_hours PRIMARY KEY (tenant_id, hour, kind, agent_id),
    CONSTRAINT fk_usage_count_hours_tenant_id_tenants
        FOREIGN KEY (tenant_id) REFERENCES tenants (id) ON DELETE CASCADE
);
CREATE INDEX ix_usage_count_hours_hour ON usage_count_hours (hour);

CREATE TABLE usage_count_days (
    kind varchar NOT NULL,
    agent_id varchar NOT NULL,
    day date NOT NULL,
    amount bigint NOT NULL,
    tenant_id varchar NOT NULL,
    CONSTRAINT pk_usage_count_days PRIMARY KEY (tenant_id, day, kind, agent_id),
    CONSTRAINT fk_usage_count_days_tenant_id_tenants
        FOREIGN KEY (tenant_id) REFERENCES tenants (id) ON DELETE CASCADE
);
CREATE INDEX ix_usage_count_days_day ON usage_count_days (day);

-- ----------------------------------------------------------------------------------- Conversations

-- Chat.

CREATE TABLE conversations (
    agent_id varchar NOT NULL,
    user_id varchar,
    embed_key_id varchar,
    session_id varchar,
    visitor jsonb,
    source varchar NOT NULL,
    title varchar DEFAULT '' NOT NULL,
    message_count integer DEFAULT 0 NOT NULL,
    last_message_at timestamptz DEFAULT now() NOT NULL,
    ended_at timestamptz,
    turn_holder varchar,
    turn_until timestamptz,
    tenant_id varchar NOT NULL,
    id varchar NOT NULL,
    created_at timestamptz DEFAULT now() NOT NULL,
    updated_at timestamptz DEFAULT now() NOT NULL,
    CONSTRAINT pk_conversations PRIMARY KEY (id),
    CONSTRAINT fk_conversations_agent_id_agents
        FOREIGN KEY (agent_id) REFERENCES agents (id) ON DELETE CASCADE,
    CONSTRAINT fk_conversations_tenant_id_tenants
        FOREIGN KEY (tenant_id) REFERENCES tenants (id) ON DELETE CASCADE,
    CONSTRAINT fk_conversations_user_id_users
        FOREIGN KEY (user_id) REFERENCES users (id) ON DELETE CASCADE
);
CREATE INDEX ix_conversations_agent_id ON conversations (tenant_id, agent_id, last_message_at, id);
CREATE INDEX ix_conversations_embed_key_id ON conversations (embed_key_id)
    WHERE embed_key_id IS NOT NULL;
CREATE INDEX ix_conversations_idle ON conversations (last_message_at) WHERE ended_at IS NULL;
CREATE INDEX ix_conversations_user_id ON conversations (user_id) WHERE user_id IS NOT NULL;
CREATE INDEX ix_conversations_titled ON conversations (tenant_id, agent_id, created_at)
    WHERE title <> '';

CREATE TABLE conversation_entries (
    seq bigint GENERATED BY DEFAULT AS IDENTITY NOT NULL,
    tenant_id varchar NOT NULL,
    agent_id varchar NOT NULL,
    conversation_id varchar,
    type varchar NOT NULL,
    role varchar,
    content varchar,
    status varchar DEFAULT 'complete' NOT NULL,
    data jsonb DEFAULT '{}' NOT NULL,
    logged boolean DEFAULT true NOT NULL,
    correlation_id varchar,
    created_at timestamptz DEFAULT now() NOT NULL,
    id varchar NOT NULL,
    CONSTRAINT pk_conversation_entries PRIMARY KEY (id),
    CONSTRAINT fk_conversation_entries_conversation_id_conversations
        FOREIGN KEY (conversation_id) REFERENCES conversations (id) ON DELETE CASCADE
);
CREATE INDEX ix_conversation_entries_agent_id
    ON conversation_entries (tenant_id, agent_id, created_at, seq);
CREATE INDEX ix_conversation_entries_conversation_id
    ON conversation_entries (conversation_id, seq);

CREATE TABLE chat_jobs (
    agent_id varchar NOT NULL,
    conversation_id varchar NOT NULL,
    user_id varchar,
    work_id varchar NOT NULL,
    caller_id varchar,
    message_id varchar NOT NULL,
    status varchar DEFAULT 'pending' NOT NULL,
    context jsonb,
    progress jsonb DEFAULT '[]' NOT NULL,
    reply jsonb,
    error jsonb,
    finished_at timestamptz,
    tenant_id varchar NOT NULL,
    id varchar NOT NULL,
    created_at timestamptz DEFAULT now() NOT NULL,
    updated_at timestamptz DEFAULT now() NOT NULL,
    CONSTRAINT pk_chat_jobs PRIMARY KEY (id),
    CONSTRAINT fk_chat_jobs_agent_id_agents
        FOREIGN KEY (agent_id) REFERENCES agents (id) ON DELETE CASCADE,
    CONSTRAINT fk_chat_jobs_conversation_id_conversations
        FOREIGN KEY (conversation_id) REFERENCES conversations (id) ON DELETE CASCADE,
    CONSTRAINT fk_chat_jobs_tenant_id_tenants
        FOREIGN KEY (tenant_id) REFERENCES tenants (id) ON DELETE CASCADE,
    CONSTRAINT fk_chat_jobs_user_id_users
        FOREIGN KEY (user_id) REFERENCES users (id) ON DELETE CASCADE
);
CREATE INDEX ix_chat_jobs_conversation_id ON chat_jobs (conversation_id);
CREATE INDEX ix_chat_jobs_user_id ON chat_jobs (user_id);
CREATE INDEX ix_chat_jobs_agent_id ON chat_jobs (tenant_id, agent_id, finished_at);

-- Speech: recordings to transcribe and texts to speak.

CREATE TABLE speech_jobs (
    agent_id varchar NOT NULL,
    work_id varchar NOT NULL,
    kind varchar NOT NULL,
    model varchar NOT NULL,
    status varchar DEFAULT 'pending' NOT NULL,
    input_key varchar,
    text varchar,
    voice varchar,
    transcript varchar,
    output_key varchar,
    error jsonb,
    created_at timestamptz DEFAULT now() NOT NULL,
    finished_at timestamptz,
    tenant_id varchar NOT NULL,
    id varchar NOT NULL,
    CONSTRAINT pk_speech_jobs PRIMARY KEY (id),
    CONSTRAINT fk_speech_jobs_agent_id_agents
        FOREIGN KEY (agent_id) REFERENCES agents (id) ON DELETE CASCADE,
    CONSTRAINT fk_speech_jobs_tenant_id_tenants
        FOREIGN KEY (tenant_id) REFERENCES tenants (id) ON DELETE CASCADE
);
CREATE INDEX ix_speech_jobs_tenant_id ON speech_jobs (tenant_id);
CREATE INDEX ix_speech_jobs_agent_id ON speech_jobs (agent_id);
CREATE INDEX ix_speech_jobs_created_at ON speech_jobs (created_at);

-- Embed: keys for web sites, and what visitors used.

CREATE TABLE embed_keys (
    agent_id varchar NOT NULL,
    name varchar NOT NULL,
    key_prefix varchar NOT NULL,
    key_hash varchar NOT NULL,
    allowed_domains varchar[] DEFAULT '{}' NOT NULL,
    require_session_token boolean DEFAULT false NOT NULL,
    require_user_token boolean DEFAULT false NOT NULL,
    identity_secret bytea,
    allow_voice boolean DEFAULT false NOT NULL,
    max_messages_per_day integer,
    max_tokens_per_day bigint,
    last_used_at timestamptz,
    tenant_id varchar NOT NULL,
    id varchar NOT NULL,
    created_at timestamptz DEFAULT now() NOT NULL,
    updated_at timestamptz DEFAULT now() NOT NULL,
    CONSTRAINT pk_embed_keys PRIMARY KEY (id),
    CONSTRAINT uq_embed_keys_key_hash UNIQUE (key_hash),
    CONSTRAINT fk_embed_keys_agent_id_agents
        FOREIGN KEY (agent_id) REFERENCES agents (id) ON DELETE CASCADE,
    CONSTRAINT fk_embed_keys_tenant_id_tenants
        FOREIGN KEY (tenant_id) REFERENCES tenants (id) ON DELETE CASCADE
);
CREATE INDEX ix_embed_keys_agent_id ON embed_keys (agent_id);
CREATE INDEX ix_embed_keys_tenant_id ON embed_keys (tenant_id, created_at);

CREATE TABLE embed_key_usage (
    embed_key_id varchar NOT NULL,
    day date NOT NULL,
    messages integer DEFAULT 0 NOT NULL,
    tokens bigint DEFAULT 0 NOT NULL,
    tenant_id varchar NOT NULL,
    CONSTRAINT pk_embed_key_usage PRIMARY KEY (embed_key_id, day),
    CONSTRAINT fk_embed_key_usage_embed_key_id_embed_keys
        FOREIGN KEY (embed_key_id) REFERENCES embed_keys (id) ON DELETE CASCADE,
    CONSTRAINT fk_embed_key_usage_tenant_id_tenants
        FOREIGN KEY (tenant_id) REFERENCES tenants (id) ON DELETE CASCADE
);
CREATE INDEX ix_embed_key_usage_tenant_id ON embed_key_usage (tenant_id);
CREATE INDEX ix_embed_key_usage_day ON embed_key_usage (day);

-- -------------------------------------------------------------------------------------------- Data

-- Data tables, their rows and imports.

CREATE TABLE data_tables (
    name varchar NOT NULL,
    description varchar DEFAULT '' NOT NULL,
    columns jsonb NOT NULL,
    next_key integer DEFAULT 1 NOT NULL,
    revision integer DEFAULT 1 NOT NULL,
    created_by varchar,
    deleted_at timestamptz,
    tenant_id varchar NOT NULL,
    id varchar NOT NULL,
    created_at timestamptz DEFAULT now() NOT NULL,
    updated_at timestamptz DEFAULT now() NOT NULL,
    CONSTRAINT pk_data_tables PRIMARY KEY (id),
    CONSTRAINT fk_data_tables_tenant_id_tenants
        FOREIGN KEY (tenant_id) REFERENCES tenants (id) ON DELETE CASCADE
);
CREATE INDEX ix_data_tables_tenant_id_created_at ON data_tables (tenant_id, created_at, id);
CREATE INDEX ix_data_tables_deleted_at ON data_tables (deleted_at) WHERE deleted_at IS NOT NULL;

CREATE TABLE data_table_counts (
    table_id varchar NOT NULL,
    part integer NOT NULL,
    rows bigint NOT NULL,
    tenant_id varchar NOT NULL,
    CONSTRAINT pk_data_table_counts PRIMARY KEY (table_id, part),
    CONSTRAINT fk_data_table_counts_table_id_data_tables
        FOREIGN KEY (table_id) REFERENCES data_tables (id) ON DELETE CASCADE,
    CONSTRAINT fk_data_table_counts_tenant_id_tenants
        FOREIGN KEY (tenant_id) REFERENCES tenants (id) ON DELETE CASCADE
);
CREATE INDEX ix_data_table_counts_tenant_id ON data_table_counts (tenant_id);

CREATE TABLE data_rows (
    table_id varchar NOT NULL,
    values jsonb NOT NULL,
    source varchar,
    created_at timestamptz DEFAULT now() NOT NULL,
    updated_at timestamptz DEFAULT now() NOT NULL,
    t1 varchar COLLATE "C",
    t2 varchar COLLATE "C",
    t3 varchar COLLATE "C",
    t4 varchar COLLATE "C",
    t5 varchar COLLATE "C",
    t6 varchar COLLATE "C",
    n1 double precision,
    n2 double precision,
    n3 double precision,
    n4 double precision,
    n5 double precision,
    n6 double precision,
    u1 varchar COLLATE "C",
    u2 varchar COLLATE "C",
    u3 varchar COLLATE "C",
    u4 varchar COLLATE "C",
    tenant_id varchar NOT NULL,
    id varchar NOT NULL,
    CONSTRAINT pk_data_rows PRIMARY KEY (id),
    CONSTRAINT fk_data_rows_table_id_data_tables
        FOREIGN KEY (table_id) REFERENCES data_tables (id) ON DELETE CASCADE,
    CONSTRAINT fk_data_rows_tenant_id_tenants
        FOREIGN KEY (tenant_id) REFERENCES tenants (id) ON DELETE CASCADE
);
CREATE INDEX ix_data_rows_table_id ON data_rows (table_id, id);
CREATE INDEX ix_data_rows_table_id_updated_at ON data_rows (table_id, updated_at, id);
CREATE INDEX ix_data_rows_tenant_id ON data_rows (tenant_id);
CREATE UNIQUE INDEX uq_data_rows_source ON data_rows (tenant_id, source) WHERE source IS NOT NULL;
CREATE INDEX ix_data_rows_t1 ON data_rows (table_id, t1, id) WHERE t1 IS NOT NULL;
CREATE INDEX ix_data_rows_t2 ON data_rows (table_id, t2, id) WHERE t2 IS NOT NULL;
CREATE INDEX ix_data_rows_t3 ON data_rows (table_id, t3, id) WHERE t3 IS NOT NULL;
CREATE INDEX ix_data_rows_t4 ON data_rows (table_id, t4, id) WHERE t4 IS NOT NULL;
CREATE INDEX ix_data_rows_t5 ON data_rows (table_id, t5, id) WHERE t5 IS NOT NULL;
CREATE INDEX ix_data_rows_t6 ON data_rows (table_id, t6, id) WHERE t6 IS NOT NULL;
CREATE INDEX ix_data_rows_n1 ON data_rows (table_id, n1, id) WHERE n1 IS NOT NULL;
CREATE INDEX ix_data_rows_n2 ON data_rows (table_id, n2, id) WHERE n2 IS NOT NULL;
CREATE INDEX ix_data_rows_n3 ON data_rows (table_id, n3, id) WHERE n3 IS NOT NULL;
CREATE INDEX ix_data_rows_n4 ON data_rows (table_id, n4, id) WHERE n4 IS NOT NULL;
CREATE INDEX ix_data_rows_n5 ON data_rows (table_id, n5, id) WHERE n5 IS NOT NULL;
CREATE INDEX ix_data_rows_n6 ON data_rows (table_id, n6, id) WHERE n6 IS NOT NULL;
CREATE UNIQUE INDEX uq_data_rows_u1 ON data_rows (table_id, u1) WHERE u1 IS NOT NULL;
CREATE UNIQUE INDEX uq_data_rows_u2 ON data_rows (table_id, u2) WHERE u2 IS NOT NULL;
CREATE UNIQUE INDEX uq_data_rows_u3 ON data_rows (table_id, u3) WHERE u3 IS NOT NULL;
CREATE UNIQUE INDEX uq_data_rows_u4 ON data_rows (table_id, u4) WHERE u4 IS NOT NULL;

CREATE TABLE data_imports (
    table_id varchar NOT NULL,
    status varchar NOT NULL,
    filename varchar NOT NULL,
    file_key varchar NOT NULL,
    mode varchar NOT NULL,
    match_key varchar,
    delimiter varchar,
    rows_total integer,
    rows_done integer DEFAULT 0 NOT NULL,
    rows_failed integer DEFAULT 0 NOT NULL,
    errors jsonb NOT NULL,
    error varchar,
    work_id varchar NOT NULL,
    created_at timestamptz DEFAULT now() NOT NULL,
    finished_at timestamptz,
    tenant_id varchar NOT NULL,
    id varchar NOT NULL,
    CONSTRAINT pk_data_imports PRIMARY KEY (id),
    CONSTRAINT fk_data_imports_table_id_data_tables
        FOREIGN KEY (table_id) REFERENCES data_tables (id) ON DELETE CASCADE,
    CONSTRAINT fk_data_imports_tenant_id_tenants
        FOREIGN KEY (tenant_id) REFERENCES tenants (id) ON DELETE CASCADE
);
CREATE INDEX ix_data_imports_table_id ON data_imports (table_id, id);
CREATE INDEX ix_data_imports_tenant_id ON data_imports (tenant_id, id);
CREATE INDEX ix_data_imports_created_at ON data_imports (created_at);

CREATE TABLE data_import_errors (
    import_id varchar NOT NULL,
    number integer NOT NULL,
    column_name varchar,
    message varchar NOT NULL,
    tenant_id varchar NOT NULL,
    CONSTRAINT pk_data_import_errors PRIMARY KEY (import_id, number),
    CONSTRAINT fk_data_import_errors_import_id_data_imports
        FOREIGN KEY (import_id) REFERENCES data_imports (id) ON DELETE CASCADE,
    CONSTRAINT fk_data_import_errors_tenant_id_tenants
        FOREIGN KEY (tenant_id) REFERENCES tenants (id) ON DELETE CASCADE
);
CREATE INDEX ix_data_import_errors_tenant_id ON data_import_errors (tenant_id);

-- -------------------------------------------------------------------------------------- Automation

-- Approvals.

CREATE TABLE approvals (
    caller_id varchar NOT NULL,
    workflow_execution_id varchar,
    node_id varchar,
    title varchar NOT NULL,
    message varchar NOT NULL,
    status varchar DEFAULT 'pending' NOT NULL,
    user_ids varchar[],
    role varchar,
    comment varchar,
    decided_by varchar,
    decided_at timestamptz,
    expires_at timestamptz,
    work_id varchar,
    correlation_id varchar NOT NULL,
    created_at timestamptz DEFAULT now() NOT NULL,
    tenant_id varchar NOT NULL,
    id varchar NOT NULL,
    CONSTRAINT pk_approvals PRIMARY KEY (id),
    CONSTRAINT fk_approvals_tenant_id_tenants
        FOREIGN KEY (tenant_id) REFERENCES tenants (id) ON DELETE CASCADE
);
CREATE INDEX ix_approvals_status ON approvals (tenant_id, status, created_at, id);
CREATE INDEX ix_approvals_workflow_execution_id
    ON approvals (workflow_execution_id, created_at, id);
CREATE INDEX ix_approvals_decided_at ON approvals (decided_at);
CREATE INDEX ix_approvals_pending ON approvals (tenant_id, caller_id) WHERE status = 'pending';

CREATE TABLE approval_assignees (
    tenant_id varchar NOT NULL,
    approval_id varchar NOT NULL,
    assignee varchar NOT NULL,
    status varchar DEFAULT 'pending' NOT NULL,
    created_at timestamptz NOT NULL,
    expires_at timestamptz,
    CONSTRAINT pk_approval_assignees PRIMARY KEY (approval_id, assignee),
    CONSTRAINT fk_approval_assignees_approval_id_approvals
        FOREIGN KEY (approval_id) REFERENCES approvals (id) ON DELETE CASCADE
);
CREATE INDEX ix_approval_assignees_status
    ON approval_assignees (assignee, status, created_at, approval_id)
    INCLUDE (tenant_id);

-- Workflows.

CREATE TABLE workflows (
    name varchar NOT NULL,
    description varchar DEFAULT '' NOT NULL,
    status varchar DEFAULT 'draft' NOT NULL,
    version integer DEFAULT 1 NOT NULL,
    published_version integer,
    trigger jsonb,
    next_run_at timestamptz,
    created_by varchar,
    deleted_at timestamptz,
    tenant_id varchar NOT NULL,
    id varchar NOT NULL,
    created_at timestamptz DEFAULT now() NOT NULL,
    updated_at timestamptz DEFAULT now() NOT NULL,
    CONSTRAINT pk_workflows PRIMARY KEY (id),
    CONSTRAINT fk_workflows_tenant_id_tenants
        FOREIGN KEY (tenant_id) REFERENCES tenants (id) ON DELETE CASCADE
);
CREATE INDEX ix_workflows_deleted_at ON workflows (deleted_at) WHERE deleted_at IS NOT NULL;
CREATE INDEX ix_workflows_next_run_at ON workflows (next_run_at) WHERE next_run_at IS NOT NULL;
CREATE INDEX ix_workflows_tenant_id_created_at ON workflows (tenant_id, created_at, id);

CREATE TABLE workflow_versions (
    tenant_id varchar NOT NULL,
    workflow_id varchar NOT NULL,
    version integer NOT NULL,
    definition json NOT NULL,
    created_by varchar,
    created_at timestamptz DEFAULT now() NOT NULL,
    id varchar NOT NULL,
    CONSTRAINT pk_workflow_versions PRIMARY KEY (id),
    CONSTRAINT uq_workflow_versions_workflow_id_version UNIQUE (workflow_id, version),
    CONSTRAINT fk_workflow_versions_workflow_id_workflows
        FOREIGN KEY (workflow_id) REFERENCES workflows (id) ON DELETE CASCADE
);

CREATE TABLE workflow_executions (
    tenant_id varchar NOT NULL,
    workflow_id varchar NOT NULL,
    version integer NOT NULL,
    status varchar DEFAULT 'pending' NOT NULL,
    progress jsonb DEFAULT '{}' NOT NULL,
    stored_bytes integer DEFAULT 0 NOT NULL,
    input json NOT NULL,
    output json,
    error json,
    trigger_type varchar NOT NULL,
    trigger_id varchar,
    started_by varchar,
    caller_id varchar,
    depth integer DEFAULT 0 NOT NULL,
    dedupe_key varchar,
    correlation_id varchar NOT NULL,
    cause_event_id varchar,
    created_at timestamptz DEFAULT now() NOT NULL,
    started_at timestamptz,
    finished_at timestamptz,
    id varchar NOT NULL,
    CONSTRAINT pk_workflow_executions PRIMARY KEY (id),
    CONSTRAINT uq_workflow_executions_tenant_id_dedupe_key UNIQUE (tenant_id, dedupe_key),
    CONSTRAINT fk_workflow_executions_workflow_id_workflows
        FOREIGN KEY (workflow_id) REFERENCES workflows (id) ON DELETE CASCADE
);
CREATE INDEX ix_workflow_executions_active
    ON workflow_executions (tenant_id, status, depth DESC, id)
    WHERE status IN ('pending', 'running', 'waiting');
CREATE INDEX ix_workflow_executions_correlation_id
    ON workflow_executions (tenant_id, correlation_id);
CREATE INDEX ix_workflow_executions_started_at ON workflow_executions (tenant_id, started_at);
CREATE INDEX ix_workflow_executions_tenant_id_created_at
    ON workflow_executions (tenant_id, status, created_at, id);
CREATE INDEX ix_workflow_executions_tenant_id_finished_at
    ON workflow_executions (tenant_id, status, finished_at, id)
    WHERE finished_at IS NOT NULL;
CREATE INDEX ix_workflow_executions_workflow_id_created_at
    ON workflow_executions (workflow_id, tenant_id, status, created_at, id);
CREATE INDEX ix_workflow_executions_workflow_id_finished_at
    ON workflow_executions (workflow_id, tenant_id, status, finished_at, id)
    WHERE finished_at IS NOT NULL;
CREATE INDEX ix_workflow_executions_ended ON workflow_executions (tenant_id, finished_at);

CREATE TABLE workflow_nodes (
    tenant_id varchar NOT NULL,
    execution_id varchar NOT NULL,
    node_id varchar NOT NULL,
    type varchar NOT NULL,
    position integer NOT NULL,
    reads varchar[] DEFAULT '{}' NOT NULL,
    status varchar DEFAULT 'pending' NOT NULL,
    attempt integer DEFAULT 0 NOT NULL,
    input json,
    output json,
    error json,
    ref_id varchar,
    started_at timestamptz,
    finished_at timestamptz,
    id varchar NOT NULL,
    CONSTRAINT pk_workflow_nodes PRIMARY KEY (id),
    CONSTRAINT uq_workflow_nodes_execution_id_node_id UNIQUE (execution_id, node_id),
    CONSTRAINT fk_workflow_nodes_execution_id_workflow_executions
        FOREIGN KEY (execution_id) REFERENCES workflow_executions (id) ON DELETE CASCADE
);

-- Incoming webhooks.

CREATE TABLE incoming_webhooks (
    name varchar NOT NULL,
    slug varchar NOT NULL,
    workflow_id varchar,
    active boolean DEFAULT true NOT NULL,
    scheme varchar,
    header varchar,
    secret bytea,
    tenant_id varchar NOT NULL,
    id varchar NOT NULL,
    created_at timestamptz DEFAULT now() NOT NULL,
    updated_at timestamptz DEFAULT now() NOT NULL,
    CONSTRAINT pk_incoming_webhooks PRIMARY KEY (id),
    CONSTRAINT uq_incoming_webhooks_slug UNIQUE (slug),
    CONSTRAINT fk_incoming_webhooks_tenant_id_tenants
        FOREIGN KEY (tenant_id) REFERENCES tenants (id) ON DELETE CASCADE
);
CREATE INDEX ix_incoming_webhooks_tenant_id_created_at
    ON incoming_webhooks (tenant_id, created_at, id);

CREATE TABLE incoming_payloads (
    webhook_id varchar NOT NULL,
    body bytea NOT NULL,
    headers json NOT NULL,
    source_ip varchar NOT NULL,
    workflow_execution_id varchar,
    replay_of varchar,
    created_at timestamptz DEFAULT now() NOT NULL,
    tenant_id varchar NOT NULL,
    id varchar NOT NULL,
    CONSTRAINT pk_incoming_payloads PRIMARY KEY (id),
    CONSTRAINT fk_incoming_payloads_tenant_id_tenants
        FOREIGN KEY (tenant_id) REFERENCES tenants (id) ON DELETE CASCADE,
    CONSTRAINT fk_incoming_payloads_webhook_id_incoming_webhooks
        FOREIGN KEY (webhook_id) REFERENCES incoming_webhooks (id) ON DELETE CASCADE
);
CREATE INDEX ix_incoming_payloads_webhook_id ON incoming_payloads (webhook_id, created_at, id);
CREATE INDEX ix_incoming_payloads_tenant_id_created_at
    ON incoming_payloads (tenant_id, created_at);

-- Subscriptions to events.

CREATE TABLE event_subscriptions (
    event_type varchar NOT NULL,
    action_type varchar NOT NULL,
    action_config json NOT NULL,
    filters json,
    active boolean DEFAULT true NOT NULL,
    trigger_count bigint DEFAULT 0 NOT NULL,
    last_triggered_at timestamptz,
    created_by varchar,
    tenant_id varchar NOT NULL,
    id varchar NOT NULL,
    created_at timestamptz DEFAULT now() NOT NULL,
    updated_at timestamptz DEFAULT now() NOT NULL,
    CONSTRAINT pk_event_subscriptions PRIMARY KEY (id),
    CONSTRAINT fk_event_subscriptions_tenant_id_tenants
        FOREIGN KEY (tenant_id) REFERENCES tenants (id) ON DELETE CASCADE
);
CREATE INDEX ix_event_subscriptions_active ON event_subscriptions (tenant_id, event_type)
    WHERE active;
CREATE INDEX ix_event_subscriptions_tenant_id_created_at
    ON event_subscriptions (tenant_id, created_at, id);

-- ------------------------------------------------------------------------------------------- Forms

-- Forms, their versions and figures.

CREATE TABLE forms (
    name varchar NOT NULL,
    slug varchar NOT NULL,
    description varchar DEFAULT '' NOT NULL,
    status varchar DEFAULT 'draft' NOT NULL,
    version integer DEFAULT 1 NOT NULL,
    field_count integer NOT NULL,
    settings jsonb DEFAULT '{}' NOT NULL,
    branding jsonb DEFAULT '{}' NOT NULL,
    workflow_id varchar,
    data_table_config jsonb,
    created_by varchar,
    published_at timestamptz,
    deleted_at timestamptz,
    tenant_id varchar NOT NULL,
    id varchar NOT NULL,
    created_at timestamptz DEFAULT now() NOT NULL,
    updated_at timestamptz DEFAULT now() NOT NULL,
    CONSTRAINT pk_forms PRIMARY KEY (id),
    CONSTRAINT uq_forms_slug UNIQUE (slug),
    CONSTRAINT fk_forms_tenant_id_tenants
        FOREIGN KEY (tenant_id) REFERENCES tenants (id) ON DELETE CASCADE
);
CREATE INDEX ix_forms_deleted_at ON forms (deleted_at) WHERE deleted_at IS NOT NULL;
CREATE INDEX ix_forms_tenant_id_created_at ON forms (tenant_id, created_at, id);

CREATE TABLE form_versions (
    form_id varchar NOT NULL,
    version integer NOT NULL,
    fields json NOT NULL,
    created_by varchar,
    created_at timestamptz DEFAULT now() NOT NULL,
    published_at timestamptz,
    tenant_id varchar NOT NULL,
    id varchar NOT NULL,
    CONSTRAINT pk_form_versions PRIMARY KEY (id),
    CONSTRAINT uq_form_versions_form_id_version UNIQUE (form_id, version),
    CONSTRAINT fk_form_versions_form_id_forms
        FOREIGN KEY (form_id) REFERENCES forms (id) ON DELETE CASCADE,
    CONSTRAINT fk_form_versions_tenant_id_tenants
        FOREIGN KEY (tenant_id) REFERENCES tenants (id) ON DELETE CASCADE
);
CREATE INDEX ix_form_versions_tenant_id ON form_versions (tenant_id);

CREATE TABLE form_counts (
    form_id varchar NOT NULL,
    part integer NOT NULL,
    submissions bigint NOT NULL,
    tenant_id varchar NOT NULL,
    CONSTRAINT pk_form_counts PRIMARY KEY (form_id, part),
    CONSTRAINT fk_form_counts_form_id_forms
        FOREIGN KEY (form_id) REFERENCES forms (id) ON DELETE CASCADE,
    CONSTRAINT fk_form_counts_tenant_id_tenants
        FOREIGN KEY (tenant_id) REFERENCES tenants (id) ON DELETE CASCADE
);
CREATE INDEX ix_form_counts_tenant_id ON form_counts (tenant_id);

CREATE TABLE form_views (
    form_id varchar NOT NULL,
    day date NOT NULL,
    views bigint NOT NULL,
    tenant_id varchar NOT NULL,
    CONSTRAINT pk_form_views PRIMARY KEY (form_id, day),
    CONSTRAINT fk_form_views_form_id_forms
        FOREIGN KEY (form_id) REFERENCES forms (id) ON DELETE CASCADE,
    CONSTRAINT fk_form_views_tenant_id_tenants
        FOREIGN KEY (tenant_id) REFERENCES tenants (id) ON DELETE CASCADE
);
CREATE INDEX ix_form_views_tenant_id ON form_views (tenant_id);

-- Submissions, uploaded files and the mails about them.

CREATE TABLE form_submissions (
    tenant_id varchar NOT NULL,
    form_id varchar NOT NULL,
    version integer NOT NULL,
    status varchar DEFAULT 'received' NOT NULL,
    data json NOT NULL,
    custom_metadata json NOT NULL,
    source varchar NOT NULL,
    ip_address varchar NOT NULL,
    user_agent varchar NOT NULL,
    page_url varchar NOT NULL,
    referrer varchar NOT NULL,
    flags varchar[] DEFAULT '{}' NOT NULL,
    answered varchar NOT NULL,
    completion_seconds integer,
    fingerprint bigint NOT NULL,
    submitted_by varchar,
    conversation_id varchar,
    workflow_execution_id varchar,
    row_id varchar,
    errors json NOT NULL,
    created_at timestamptz DEFAULT now() NOT NULL,
    processed_at timestamptz,
    id varchar NOT NULL,
    CONSTRAINT pk_form_submissions PRIMARY KEY (id),
    CONSTRAINT fk_form_submissions_form_id_forms
        FOREIGN KEY (form_id) REFERENCES forms (id) ON DELETE CASCADE
);
CREATE INDEX ix_form_submissions_figures ON form_submissions (form_id, version, answered)
    INCLUDE (tenant_id, source, created_at, completion_seconds);
CREATE INDEX ix_form_submissions_fingerprint ON form_submissions (fingerprint, created_at);
CREATE INDEX ix_form_submissions_form_id_created_at ON form_submissions (form_id, created_at, id);
CREATE INDEX ix_form_submissions_form_id_status
    ON form_submissions (form_id, status, created_at, id);

CREATE TABLE form_uploads (
    file_id varchar NOT NULL,
    form_id varchar NOT NULL,
    field_id varchar NOT NULL,
    submission_id varchar,
    filename varchar NOT NULL,
    size_bytes bigint NOT NULL,
    mime_type varchar NOT NULL,
    network varchar NOT NULL,
    created_at timestamptz DEFAULT now() NOT NULL,
    expires_at timestamptz,
    tenant_id varchar NOT NULL,
    CONSTRAINT pk_form_uploads PRIMARY KEY (file_id),
    CONSTRAINT fk_form_uploads_form_id_forms
        FOREIGN KEY (form_id) REFERENCES forms (id) ON DELETE CASCADE,
    CONSTRAINT fk_form_uploads_tenant_id_tenants
        FOREIGN KEY (tenant_id) REFERENCES tenants (id) ON DELETE CASCADE
);
CREATE INDEX ix_form_uploads_expires_at ON form_uploads (expires_at) WHERE expires_at IS NOT NULL;
CREATE INDEX ix_form_uploads_form_id ON form_uploads (form_id, submission_id);
CREATE INDEX ix_form_uploads_submission_id ON form_uploads (submission_id)
    WHERE submission_id IS NOT NULL;
CREATE INDEX ix_form_uploads_tenant_id ON form_uploads (tenant_id);
CREATE INDEX ix_form_uploads_network ON form_uploads (form_id, network, created_at);
CREATE INDEX ix_form_uploads_waiting ON form_uploads (tenant_id) INCLUDE (network, size_bytes)
    WHERE submission_id IS NULL;

CREATE TABLE form_recipients (
    tenant_id varchar NOT NULL,
    address varchar NOT NULL,
    token_hash varchar,
    expires_at timestamptz,
    confirmed_at timestamptz,
    created_at timestamptz DEFAULT now() NOT NULL,
    CONSTRAINT pk_form_recipients PRIMARY KEY (tenant_id, address),
    CONSTRAINT uq_form_recipients_token_hash UNIQUE (token_hash),
    CONSTRAINT fk_form_recipients_tenant_id_tenants
        FOREIGN KEY (tenant_id) REFERENCES tenants (id) ON DELETE CASCADE
);

CREATE TABLE form_mail_counts (
    form_id varchar NOT NULL,
    hour timestamptz NOT NULL,
    mails integer NOT NULL,
    withheld integer DEFAULT 0 NOT NULL,
    digests integer DEFAULT 0 NOT NULL,
    tenant_id varchar NOT NULL,
    CONSTRAINT pk_form_mail_counts PRIMARY KEY (form_id),
    CONSTRAINT fk_form_mail_counts_form_id_forms
        FOREIGN KEY (form_id) REFERENCES forms (id) ON DELETE CASCADE,
    CONSTRAINT fk_form_mail_counts_tenant_id_tenants
        FOREIGN KEY (tenant_id) REFERENCES tenants (id) ON DELETE CASCADE
);
CREATE INDEX ix_form_mail_counts_tenant_id ON form_mail_counts (tenant_id);

-- Drafts, and conversations that fill in a form.

CREATE TABLE form_drafts (
    form_id varchar NOT NULL,
    version integer NOT NULL,
    token_hash varchar,
    data json NOT NULL,
    stopped_at varchar,
    created_at timestamptz DEFAULT now() NOT NULL,
    updated_at timestamptz DEFAULT now() NOT NULL,
    expires_at timestamptz NOT NULL,
    tenant_id varchar NOT NULL,
    id varchar NOT NULL,
    CONSTRAINT pk_form_drafts PRIMARY KEY (id),
    CONSTRAINT uq_form_drafts_token_hash UNIQUE (token_hash),
    CONSTRAINT fk_form_drafts_form_id_forms
        FOREIGN KEY (form_id) REFERENCES forms (id) ON DELETE CASCADE,
    CONSTRAINT fk_form_drafts_tenant_id_tenants
        FOREIGN KEY (tenant_id) REFERENCES tenants (id) ON DELETE CASCADE
);
CREATE INDEX ix_form_drafts_expires_at ON form_drafts (expires_at) WHERE token_hash IS NOT NULL;
CREATE INDEX ix_form_drafts_form_id ON form_drafts (form_id, stopped_at);
CREATE INDEX ix_form_drafts_tenant_id ON form_drafts (tenant_id);

CREATE TABLE form_conversations (
    form_id varchar NOT NULL,
    version integer NOT NULL,
    status varchar DEFAULT 'active' NOT NULL,
    data json NOT NULL,
    skipped varchar[] DEFAULT '{}' NOT NULL,
    current_field varchar,
    turn integer DEFAULT 0 NOT NULL,
    submission_id varchar,
    created_at timestamptz DEFAULT now() NOT NULL,
    updated_at timestamptz DEFAULT now() NOT NULL,
    expires_at timestamptz,
    tenant_id varchar NOT NULL,
    id varchar NOT NULL,
    CONSTRAINT pk_form_conversations PRIMARY KEY (id),
    CONSTRAINT fk_form_conversations_form_id_forms
        FOREIGN KEY (form_id) REFERENCES forms (id) ON DELETE CASCADE,
    CONSTRAINT fk_form_conversations_tenant_id_tenants
        FOREIGN KEY (tenant_id) REFERENCES tenants (id) ON DELETE CASCADE
);
CREATE INDEX ix_form_conversations_expires_at ON form_conversations (expires_at)
    WHERE expires_at IS NOT NULL;
CREATE INDEX ix_form_conversations_form_id ON form_conversations (form_id, status, current_field);
CREATE INDEX ix_form_conversations_status ON form_conversations (status, updated_at);
CREATE INDEX ix_form_conversations_tenant_id ON form_conversations (tenant_id);

CREATE TABLE form_messages (
    conversation_id varchar NOT NULL,
    position integer NOT NULL,
    role varchar NOT NULL,
    content varchar NOT NULL,
    field_id varchar,
    created_at timestamptz DEFAULT now() NOT NULL,
    tenant_id varchar NOT NULL,
    id varchar NOT NULL,
    CONSTRAINT pk_form_messages PRIMARY KEY (id),
    CONSTRAINT fk_form_messages_conversation_id_form_conversations
        FOREIGN KEY (conversation_id) REFERENCES form_conversations (id) ON DELETE CASCADE,
    CONSTRAINT fk_form_messages_tenant_id_tenants
        FOREIGN KEY (tenant_id) REFERENCES tenants (id) ON DELETE CASCADE
);
CREATE INDEX ix_form_messages_conversation_id ON form_messages (conversation_id, position);
CREATE INDEX ix_form_messages_tenant_id ON form_messages (tenant_id);

-- ------------------------------------------------------------- Foreign keys to tables further down

ALTER TABLE mail_messages ADD CONSTRAINT fk_mail_messages_tenant_id_tenants
    FOREIGN KEY (tenant_id) REFERENCES tenants (id) ON DELETE CASCADE;
ALTER TABLE files ADD CONSTRAINT fk_files_tenant_id_tenants
    FOREIGN KEY (tenant_id) REFERENCES tenants (id) ON DELETE CASCADE;
ALTER TABLE storage_usage ADD CONSTRAINT fk_storage_usage_tenant_id_tenants
    FOREIGN KEY (tenant_id) REFERENCES tenants (id) ON DELETE CASCADE;
ALTER TABLE storage_kinds ADD CONSTRAINT fk_storage_kinds_tenant_id_tenants
    FOREIGN KEY (tenant_id) REFERENCES tenants (id) ON DELETE CASCADE;
ALTER TABLE webhooks ADD CONSTRAINT fk_webhooks_subscription_id_event_subscriptions
    FOREIGN KEY (subscription_id) REFERENCES event_subscriptions (id) ON DELETE CASCADE;
ALTER TABLE conversations ADD CONSTRAINT fk_conversations_embed_key_id_embed_keys
    FOREIGN KEY (embed_key_id) REFERENCES embed_keys (id) ON DELETE SET NULL;

-- ----------------------------------------------------------------------------------- Storage quota

-- Triggers count what rows take, as the areas declare it. The bytes are computed from the content
-- when a row is added and when it is deleted, so that the same bytes are subtracted: its size on
-- disk differs between the two. 256 bytes stand for a row's header, ids, times and index entries.
-- Jobs and executions count from their end on: while they run, their rows change often.

CREATE FUNCTION count_insert_event_log() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO storage_changes (tenant_id, kind, bytes)
    SELECT tenant_id, 'events', sum(bytes) FROM (
        SELECT tenant_id, 256 + octet_length(t.data::text) AS bytes FROM changed t
    ) counted
    GROUP BY tenant_id HAVING sum(bytes) > 0;
    RETURN NULL;
END $$;
CREATE TRIGGER count_insert_event_log AFTER INSERT ON event_log
    REFERENCING NEW TABLE AS changed FOR EACH STATEMENT
    EXECUTE FUNCTION count_insert_event_log();

CREATE FUNCTION count_delete_event_log() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO storage_changes (tenant_id, kind, bytes)
    SELECT tenant_id, 'events', -sum(bytes) FROM (
        SELECT tenant_id, 256 + octet_length(t.data::text) AS bytes FROM changed t
    ) counted
    GROUP BY tenant_id HAVING sum(bytes) > 0;
    RETURN NULL;
END $$;
CREATE TRIGGER count_delete_event_log AFTER DELETE ON event_log
    REFERENCING OLD TABLE AS changed FOR EACH STATEMENT
    EXECUTE FUNCTION count_delete_event_log();

-- With the row of the delivery.
CREATE FUNCTION count_insert_delivery_attempts() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO storage_changes (tenant_id, kind, bytes)
    SELECT tenant_id, 'payloads', sum(bytes) FROM (
        SELECT tenant_id,
            512 + coalesce(octet_length(t.response_body), 0) + coalesce(octet_length(t.error), 0)
            + octet_length(t.url) AS bytes
        FROM changed t
    ) counted
    GROUP BY tenant_id HAVING sum(bytes) > 0;
    RETURN NULL;
END $$;
CREATE TRIGGER count_insert_delivery_attempts AFTER INSERT ON delivery_attempts
    REFERENCING NEW TABLE AS changed FOR EACH STATEMENT
    EXECUTE FUNCTION count_insert_delivery_attempts();

CREATE FUNCTION count_delete_delivery_attempts() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO storage_changes (tenant_id, kind, bytes)
    SELECT tenant_id, 'payloads', -sum(bytes) FROM (
        SELECT tenant_id,
            512 + coalesce(octet_length(t.response_body), 0) + coalesce(octet_length(t.error), 0)
            + octet_length(t.url) AS bytes
        FROM changed t
    ) counted
    GROUP BY tenant_id HAVING sum(bytes) > 0;
    RETURN NULL;
END $$;
CREATE TRIGGER count_delete_delivery_attempts AFTER DELETE ON delivery_attempts
    REFERENCING OLD TABLE AS changed FOR EACH STATEMENT
    EXECUTE FUNCTION count_delete_delivery_attempts();

CREATE FUNCTION count_insert_agents() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO storage_changes (tenant_id, kind, bytes)
    SELECT tenant_id, 'definitions', sum(bytes) FROM (
        SELECT tenant_id,
            256 + octet_length(t.system_prompt) + octet_length(t.description) AS bytes
        FROM changed t
    ) counted
    GROUP BY tenant_id HAVING sum(bytes) > 0;
    RETURN NULL;
END $$;
CREATE TRIGGER count_insert_agents AFTER INSERT ON agents
    REFERENCING NEW TABLE AS changed FOR EACH STATEMENT
    EXECUTE FUNCTION count_insert_agents();

CREATE FUNCTION count_delete_agents() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO storage_changes (tenant_id, kind, bytes)
    SELECT tenant_id, 'definitions', -sum(bytes) FROM (
        SELECT tenant_id,
            256 + octet_length(t.system_prompt) + octet_length(t.description) AS bytes
        FROM changed t
    ) counted
    GROUP BY tenant_id HAVING sum(bytes) > 0;
    RETURN NULL;
END $$;
CREATE TRIGGER count_delete_agents AFTER DELETE ON agents
    REFERENCING OLD TABLE AS changed FOR EACH STATEMENT
    EXECUTE FUNCTION count_delete_agents();

CREATE FUNCTION count_update_agents() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE change bigint :=
    (256 + octet_length(NEW.system_prompt) + octet_length(NEW.description))
    - (256 + octet_length(OLD.system_prompt) + octet_length(OLD.description));
BEGIN
    IF change <> 0 THEN
        INSERT INTO storage_changes (tenant_id, kind, bytes)
        VALUES (NEW.tenant_id, 'definitions', change);
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER count_update_agents AFTER UPDATE ON agents
    FOR EACH ROW WHEN (OLD.updated_at <> NEW.updated_at) EXECUTE FUNCTION count_update_agents();

CREATE FUNCTION count_insert_agent_versions() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO storage_changes (tenant_id, kind, bytes)
    SELECT tenant_id, 'definitions', sum(bytes) FROM (
        SELECT tenant_id, 256 + octet_length(t.system_prompt) AS bytes FROM changed t
    ) counted
    GROUP BY tenant_id HAVING sum(bytes) > 0;
    RETURN NULL;
END $$;
CREATE TRIGGER count_insert_agent_versions AFTER INSERT ON agent_versions
    REFERENCING NEW TABLE AS changed FOR EACH STATEMENT
    EXECUTE FUNCTION count_insert_agent_versions();

CREATE FUNCTION count_delete_agent_versions() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO storage_changes (tenant_id, kind, bytes)
    SELECT tenant_id, 'definitions', -sum(bytes) FROM (
        SELECT tenant_id, 256 + octet_length(t.system_prompt) AS bytes FROM changed t
    ) counted
    GROUP BY tenant_id HAVING sum(bytes) > 0;
    RETURN NULL;
END $$;
CREATE TRIGGER count_delete_agent_versions AFTER DELETE ON agent_versions
    REFERENCING OLD TABLE AS changed FOR EACH STATEMENT
    EXECUTE FUNCTION count_delete_agent_versions();

CREATE FUNCTION count_insert_tools() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO storage_changes (tenant_id, kind, bytes)
    SELECT tenant_id, 'definitions', sum(bytes) FROM (
        SELECT tenant_id,
            256 + octet_length(t.config::text) + octet_length(t.description)
            + coalesce(octet_length(t.input_schema::text), 0)
            + coalesce(octet_length(t.output_schema::text), 0) AS bytes
        FROM changed t
    ) counted
    GROUP BY tenant_id HAVING sum(bytes) > 0;
    RETURN NULL;
END $$;
CREATE TRIGGER count_insert_tools AFTER INSERT ON tools
    REFERENCING NEW TABLE AS changed FOR EACH STATEMENT
    EXECUTE FUNCTION count_insert_tools();

CREATE FUNCTION count_delete_tools() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO storage_changes (tenant_id, kind, bytes)
    SELECT tenant_id, 'definitions', -sum(bytes) FROM (
        SELECT tenant_id,
            256 + octet_length(t.config::text) + octet_length(t.description)
            + coalesce(octet_length(t.input_schema::text), 0)
            + coalesce(octet_length(t.output_schema::text), 0) AS bytes
        FROM changed t
    ) counted
    GROUP BY tenant_id HAVING sum(bytes) > 0;
    RETURN NULL;
END $$;
CREATE TRIGGER count_delete_tools AFTER DELETE ON tools
    REFERENCING OLD TABLE AS changed FOR EACH STATEMENT
    EXECUTE FUNCTION count_delete_tools();

CREATE FUNCTION count_update_tools() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE change bigint :=
    (256 + octet_length(NEW.config::text) + octet_length(NEW.description)
        + coalesce(octet_length(NEW.input_schema::text), 0)
        + coalesce(octet_length(NEW.output_schema::text), 0))
    - (256 + octet_length(OLD.config::text) + octet_length(OLD.description)
        + coalesce(octet_length(OLD.input_schema::text), 0)
        + coalesce(octet_length(OLD.output_schema::text), 0));
BEGIN
    IF change <> 0 THEN
        INSERT INTO storage_changes (tenant_id, kind, bytes)
        VALUES (NEW.tenant_id, 'definitions', change);
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER count_update_tools AFTER UPDATE ON tools
    FOR EACH ROW WHEN (OLD.updated_at <> NEW.updated_at) EXECUTE FUNCTION count_update_tools();

CREATE FUNCTION count_delete_tool_executions() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO storage_changes (tenant_id, kind, bytes)
    SELECT tenant_id, 'executions', -sum(bytes) FROM (
        SELECT tenant_id,
            CASE WHEN t.finished_at IS NULL THEN 0 ELSE 256 + octet_length(t.input::text)
            + coalesce(octet_length(t.output::text), 0)
            + coalesce(octet_length(t.error_message), 0) END AS bytes
        FROM changed t
    ) counted
    GROUP BY tenant_id HAVING sum(bytes) > 0;
    RETURN NULL;
END $$;
CREATE TRIGGER count_delete_tool_executions AFTER DELETE ON tool_executions
    REFERENCING OLD TABLE AS changed FOR EACH STATEMENT
    EXECUTE FUNCTION count_delete_tool_executions();

CREATE FUNCTION count_update_tool_executions() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE change bigint :=
    (CASE WHEN NEW.finished_at IS NULL THEN 0 ELSE 256 + octet_length(NEW.input::text)
        + coalesce(octet_length(NEW.output::text), 0)
        + coalesce(octet_length(NEW.error_message), 0) END)
    - (CASE WHEN OLD.finished_at IS NULL THEN 0 ELSE 256 + octet_length(OLD.input::text)
        + coalesce(octet_length(OLD.output::text), 0)
        + coalesce(octet_length(OLD.error_message), 0) END);
BEGIN
    IF change <> 0 THEN
        INSERT INTO storage_changes (tenant_id, kind, bytes)
        VALUES (NEW.tenant_id, 'executions', change);
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER count_update_tool_executions AFTER UPDATE ON tool_executions
    FOR EACH ROW WHEN (OLD.finished_at IS NOT NULL OR NEW.finished_at IS NOT NULL)
    EXECUTE FUNCTION count_update_tool_executions();

-- 2560 bytes stand for the text and the vector of a chunk.
CREATE FUNCTION count_insert_documents() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO storage_changes (tenant_id, kind, bytes)
    SELECT tenant_id, 'knowledge', sum(bytes) FROM (
        SELECT tenant_id, 256 + 2560 * t.chunk_count::bigint AS bytes FROM changed t
    ) counted
    GROUP BY tenant_id HAVING sum(bytes) > 0;
    RETURN NULL;
END $$;
CREATE TRIGGER count_insert_documents AFTER INSERT ON documents
    REFERENCING NEW TABLE AS changed FOR EACH STATEMENT
    EXECUTE FUNCTION count_insert_documents();

CREATE FUNCTION count_delete_documents() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO storage_changes (tenant_id, kind, bytes)
    SELECT tenant_id, 'knowledge', -sum(bytes) FROM (
        SELECT tenant_id, 256 + 2560 * t.chunk_count::bigint AS bytes FROM changed t
    ) counted
    GROUP BY tenant_id HAVING sum(bytes) > 0;
    RETURN NULL;
END $$;
CREATE TRIGGER count_delete_documents AFTER DELETE ON documents
    REFERENCING OLD TABLE AS changed FOR EACH STATEMENT
    EXECUTE FUNCTION count_delete_documents();

CREATE FUNCTION count_update_documents() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE change bigint :=
    (256 + 2560 * NEW.chunk_count::bigint)
    - (256 + 2560 * OLD.chunk_count::bigint);
BEGIN
    IF change <> 0 THEN
        INSERT INTO storage_changes (tenant_id, kind, bytes)
        VALUES (NEW.tenant_id, 'knowledge', change);
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER count_update_documents AFTER UPDATE ON documents
    FOR EACH ROW WHEN (OLD.chunk_count <> NEW.chunk_count)
    EXECUTE FUNCTION count_update_documents();

CREATE FUNCTION count_insert_conversation_entries() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO storage_changes (tenant_id, kind, bytes)
    SELECT tenant_id, 'conversations', sum(bytes) FROM (
        SELECT tenant_id,
            256 + coalesce(octet_length(t.content), 0) + octet_length(t.data::text) AS bytes
        FROM changed t
    ) counted
    GROUP BY tenant_id HAVING sum(bytes) > 0;
    RETURN NULL;
END $$;
CREATE TRIGGER count_insert_conversation_entries AFTER INSERT ON conversation_entries
    REFERENCING NEW TABLE AS changed FOR EACH STATEMENT
    EXECUTE FUNCTION count_insert_conversation_entries();

CREATE FUNCTION count_delete_conversation_entries() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO storage_changes (tenant_id, kind, bytes)
    SELECT tenant_id, 'conversations', -sum(bytes) FROM (
        SELECT tenant_id,
            256 + coalesce(octet_length(t.content), 0) + octet_length(t.data::text) AS bytes
        FROM changed t
    ) counted
    GROUP BY tenant_id HAVING sum(bytes) > 0;
    RETURN NULL;
END $$;
CREATE TRIGGER count_delete_conversation_entries AFTER DELETE ON conversation_entries
    REFERENCING OLD TABLE AS changed FOR EACH STATEMENT
    EXECUTE FUNCTION count_delete_conversation_entries();

CREATE FUNCTION count_update_conversation_entries() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE change bigint :=
    (256 + coalesce(octet_length(NEW.content), 0) + octet_length(NEW.data::text))
    - (256 + coalesce(octet_length(OLD.content), 0) + octet_length(OLD.data::text));
BEGIN
    IF change <> 0 THEN
        INSERT INTO storage_changes (tenant_id, kind, bytes)
        VALUES (NEW.tenant_id, 'conversations', change);
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER count_update_conversation_entries AFTER UPDATE ON conversation_entries
    FOR EACH ROW WHEN (OLD.content IS DISTINCT FROM NEW.content
        OR OLD.data IS DISTINCT FROM NEW.data)
    EXECUTE FUNCTION count_update_conversation_entries();

CREATE FUNCTION count_delete_chat_jobs() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO storage_changes (tenant_id, kind, bytes)
    SELECT tenant_id, 'conversations', -sum(bytes) FROM (
        SELECT tenant_id,
            CASE WHEN t.finished_at IS NULL THEN 0 ELSE 256 + octet_length(t.progress::text)
            + coalesce(octet_length(t.reply::text), 0)
            + coalesce(octet_length(t.context::text), 0) END AS bytes
        FROM changed t
    ) counted
    GROUP BY tenant_id HAVING sum(bytes) > 0;
    RETURN NULL;
END $$;
CREATE TRIGGER count_delete_chat_jobs AFTER DELETE ON chat_jobs
    REFERENCING OLD TABLE AS changed FOR EACH STATEMENT
    EXECUTE FUNCTION count_delete_chat_jobs();

CREATE FUNCTION count_update_chat_jobs() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE change bigint :=
    (CASE WHEN NEW.finished_at IS NULL THEN 0 ELSE 256 + octet_length(NEW.progress::text)
        + coalesce(octet_length(NEW.reply::text), 0)
        + coalesce(octet_length(NEW.context::text), 0) END)
    - (CASE WHEN OLD.finished_at IS NULL THEN 0 ELSE 256 + octet_length(OLD.progress::text)
        + coalesce(octet_length(OLD.reply::text), 0)
        + coalesce(octet_length(OLD.context::text), 0) END);
BEGIN
    IF change <> 0 THEN
        INSERT INTO storage_changes (tenant_id, kind, bytes)
        VALUES (NEW.tenant_id, 'conversations', change);
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER count_update_chat_jobs AFTER UPDATE ON chat_jobs
    FOR EACH ROW WHEN (OLD.finished_at IS NOT NULL OR NEW.finished_at IS NOT NULL)
    EXECUTE FUNCTION count_update_chat_jobs();

CREATE FUNCTION count_insert_data_rows() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO storage_changes (tenant_id, kind, bytes)
    SELECT tenant_id, 'tables', sum(bytes) FROM (
        SELECT tenant_id, 256 + octet_length(t.values::text) AS bytes FROM changed t
    ) counted
    GROUP BY tenant_id HAVING sum(bytes) > 0;
    RETURN NULL;
END $$;
CREATE TRIGGER count_insert_data_rows AFTER INSERT ON data_rows
    REFERENCING NEW TABLE AS changed FOR EACH STATEMENT
    EXECUTE FUNCTION count_insert_data_rows();

CREATE FUNCTION count_delete_data_rows() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO storage_changes (tenant_id, kind, bytes)
    SELECT tenant_id, 'tables', -sum(bytes) FROM (
        SELECT tenant_id, 256 + octet_length(t.values::text) AS bytes FROM changed t
    ) counted
    GROUP BY tenant_id HAVING sum(bytes) > 0;
    RETURN NULL;
END $$;
CREATE TRIGGER count_delete_data_rows AFTER DELETE ON data_rows
    REFERENCING OLD TABLE AS changed FOR EACH STATEMENT
    EXECUTE FUNCTION count_delete_data_rows();

CREATE FUNCTION count_update_data_rows() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE change bigint :=
    (256 + octet_length(NEW.values::text))
    - (256 + octet_length(OLD.values::text));
BEGIN
    IF change <> 0 THEN
        INSERT INTO storage_changes (tenant_id, kind, bytes)
        VALUES (NEW.tenant_id, 'tables', change);
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER count_update_data_rows AFTER UPDATE ON data_rows
    FOR EACH ROW WHEN (OLD.values IS DISTINCT FROM NEW.values)
    EXECUTE FUNCTION count_update_data_rows();

CREATE FUNCTION count_insert_workflow_versions() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO storage_changes (tenant_id, kind, bytes)
    SELECT tenant_id, 'definitions', sum(bytes) FROM (
        SELECT tenant_id, 256 + octet_length(t.definition::text) AS bytes FROM changed t
    ) counted
    GROUP BY tenant_id HAVING sum(bytes) > 0;
    RETURN NULL;
END $$;
CREATE TRIGGER count_insert_workflow_versions AFTER INSERT ON workflow_versions
    REFERENCING NEW TABLE AS changed FOR EACH STATEMENT
    EXECUTE FUNCTION count_insert_workflow_versions();

CREATE FUNCTION count_delete_workflow_versions() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO storage_changes (tenant_id, kind, bytes)
    SELECT tenant_id, 'definitions', -sum(bytes) FROM (
        SELECT tenant_id, 256 + octet_length(t.definition::text) AS bytes FROM changed t
    ) counted
    GROUP BY tenant_id HAVING sum(bytes) > 0;
    RETURN NULL;
END $$;
CREATE TRIGGER count_delete_workflow_versions AFTER DELETE ON workflow_versions
    REFERENCING OLD TABLE AS changed FOR EACH STATEMENT
    EXECUTE FUNCTION count_delete_workflow_versions();

-- An execution that is retried has no end any more.
CREATE FUNCTION count_delete_workflow_executions() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO storage_changes (tenant_id, kind, bytes)
    SELECT tenant_id, 'executions', -sum(bytes) FROM (
        SELECT tenant_id,
            CASE WHEN t.finished_at IS NULL THEN 0 ELSE 256 + t.stored_bytes
            + octet_length(t.input::text) + coalesce(octet_length(t.output::text), 0) END AS bytes
        FROM changed t
    ) counted
    GROUP BY tenant_id HAVING sum(bytes) > 0;
    RETURN NULL;
END $$;
CREATE TRIGGER count_delete_workflow_executions AFTER DELETE ON workflow_executions
    REFERENCING OLD TABLE AS changed FOR EACH STATEMENT
    EXECUTE FUNCTION count_delete_workflow_executions();

CREATE FUNCTION count_update_workflow_executions() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE change bigint :=
    (CASE WHEN NEW.finished_at IS NULL THEN 0 ELSE 256 + NEW.stored_bytes
        + octet_length(NEW.input::text) + coalesce(octet_length(NEW.output::text), 0) END)
    - (CASE WHEN OLD.finished_at IS NULL THEN 0 ELSE 256 + OLD.stored_bytes
        + octet_length(OLD.input::text) + coalesce(octet_length(OLD.output::text), 0) END);
BEGIN
    IF change <> 0 THEN
        INSERT INTO storage_changes (tenant_id, kind, bytes)
        VALUES (NEW.tenant_id, 'executions', change);
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER count_update_workflow_executions AFTER UPDATE ON workflow_executions
    FOR EACH ROW WHEN (OLD.finished_at IS NOT NULL OR NEW.finished_at IS NOT NULL)
    EXECUTE FUNCTION count_update_workflow_executions();

CREATE FUNCTION count_insert_incoming_payloads() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO storage_changes (tenant_id, kind, bytes)
    SELECT tenant_id, 'payloads', sum(bytes) FROM (
        SELECT tenant_id,
            256 + octet_length(t.body) + octet_length(t.headers::text) AS bytes
        FROM changed t
    ) counted
    GROUP BY tenant_id HAVING sum(bytes) > 0;
    RETURN NULL;
END $$;
CREATE TRIGGER count_insert_incoming_payloads AFTER INSERT ON incoming_payloads
    REFERENCING NEW TABLE AS changed FOR EACH STATEMENT
    EXECUTE FUNCTION count_insert_incoming_payloads();

CREATE FUNCTION count_delete_incoming_payloads() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO storage_changes (tenant_id, kind, bytes)
    SELECT tenant_id, 'payloads', -sum(bytes) FROM (
        SELECT tenant_id,
            256 + octet_length(t.body) + octet_length(t.headers::text) AS bytes
        FROM changed t
    ) counted
    GROUP BY tenant_id HAVING sum(bytes) > 0;
    RETURN NULL;
END $$;
CREATE TRIGGER count_delete_incoming_payloads AFTER DELETE ON incoming_payloads
    REFERENCING OLD TABLE AS changed FOR EACH STATEMENT
    EXECUTE FUNCTION count_delete_incoming_payloads();

CREATE FUNCTION count_insert_form_versions() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO storage_changes (tenant_id, kind, bytes)
    SELECT tenant_id, 'definitions', sum(bytes) FROM (
        SELECT tenant_id, 256 + octet_length(t.fields::text) AS bytes FROM changed t
    ) counted
    GROUP BY tenant_id HAVING sum(bytes) > 0;
    RETURN NULL;
END $$;
CREATE TRIGGER count_insert_form_versions AFTER INSERT ON form_versions
    REFERENCING NEW TABLE AS changed FOR EACH STATEMENT
    EXECUTE FUNCTION count_insert_form_versions();

CREATE FUNCTION count_delete_form_versions() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO storage_changes (tenant_id, kind, bytes)
    SELECT tenant_id, 'definitions', -sum(bytes) FROM (
        SELECT tenant_id, 256 + octet_length(t.fields::text) AS bytes FROM changed t
    ) counted
    GROUP BY tenant_id HAVING sum(bytes) > 0;
    RETURN NULL;
END $$;
CREATE TRIGGER count_delete_form_versions AFTER DELETE ON form_versions
    REFERENCING OLD TABLE AS changed FOR EACH STATEMENT
    EXECUTE FUNCTION count_delete_form_versions();

CREATE FUNCTION count_update_form_versions() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE change bigint :=
    (256 + octet_length(NEW.fields::text))
    - (256 + octet_length(OLD.fields::text));
BEGIN
    IF change <> 0 THEN
        INSERT INTO storage_changes (tenant_id, kind, bytes)
        VALUES (NEW.tenant_id, 'definitions', change);
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER count_update_form_versions AFTER UPDATE ON form_versions
    FOR EACH ROW WHEN (OLD.fields::text <> NEW.fields::text)
    EXECUTE FUNCTION count_update_form_versions();

CREATE FUNCTION count_insert_form_submissions() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO storage_changes (tenant_id, kind, bytes)
    SELECT tenant_id, 'forms', sum(bytes) FROM (
        SELECT tenant_id,
            256 + octet_length(t.data::text) + octet_length(t.custom_metadata::text) AS bytes
        FROM changed t
    ) counted
    GROUP BY tenant_id HAVING sum(bytes) > 0;
    RETURN NULL;
END $$;
CREATE TRIGGER count_insert_form_submissions AFTER INSERT ON form_submissions
    REFERENCING NEW TABLE AS changed FOR EACH STATEMENT
    EXECUTE FUNCTION count_insert_form_submissions();

CREATE FUNCTION count_delete_form_submissions() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO storage_changes (tenant_id, kind, bytes)
    SELECT tenant_id, 'forms', -sum(bytes) FROM (
        SELECT tenant_id,
            256 + octet_length(t.data::text) + octet_length(t.custom_metadata::text) AS bytes
        FROM changed t
    ) counted
    GROUP BY tenant_id HAVING sum(bytes) > 0;
    RETURN NULL;
END $$;
CREATE TRIGGER count_delete_form_submissions AFTER DELETE ON form_submissions
    REFERENCING OLD TABLE AS changed FOR EACH STATEMENT
    EXECUTE FUNCTION count_delete_form_submissions();

CREATE FUNCTION count_insert_form_drafts() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO storage_changes (tenant_id, kind, bytes)
    SELECT tenant_id, 'forms', sum(bytes) FROM (
        SELECT tenant_id, 256 + octet_length(t.data::text) AS bytes FROM changed t
    ) counted
    GROUP BY tenant_id HAVING sum(bytes) > 0;
    RETURN NULL;
END $$;
CREATE TRIGGER count_insert_form_drafts AFTER INSERT ON form_drafts
    REFERENCING NEW TABLE AS changed FOR EACH STATEMENT
    EXECUTE FUNCTION count_insert_form_drafts();

CREATE FUNCTION count_delete_form_drafts() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO storage_changes (tenant_id, kind, bytes)
    SELECT tenant_id, 'forms', -sum(bytes) FROM (
        SELECT tenant_id, 256 + octet_length(t.data::text) AS bytes FROM changed t
    ) counted
    GROUP BY tenant_id HAVING sum(bytes) > 0;
    RETURN NULL;
END $$;
CREATE TRIGGER count_delete_form_drafts AFTER DELETE ON form_drafts
    REFERENCING OLD TABLE AS changed FOR EACH STATEMENT
    EXECUTE FUNCTION count_delete_form_drafts();

CREATE FUNCTION count_update_form_drafts() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE change bigint :=
    (256 + octet_length(NEW.data::text))
    - (256 + octet_length(OLD.data::text));
BEGIN
    IF change <> 0 THEN
        INSERT INTO storage_changes (tenant_id, kind, bytes)
        VALUES (NEW.tenant_id, 'forms', change);
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER count_update_form_drafts AFTER UPDATE ON form_drafts
    FOR EACH ROW WHEN (OLD.data::text <> NEW.data::text)
    EXECUTE FUNCTION count_update_form_drafts();

CREATE FUNCTION count_insert_form_conversations() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO storage_changes (tenant_id, kind, bytes)
    SELECT tenant_id, 'forms', sum(bytes) FROM (
        SELECT tenant_id, 256 + octet_length(t.data::text) AS bytes FROM changed t
    ) counted
    GROUP BY tenant_id HAVING sum(bytes) > 0;
    RETURN NULL;
END $$;
CREATE TRIGGER count_insert_form_conversations AFTER INSERT ON form_conversations
    REFERENCING NEW TABLE AS changed FOR EACH STATEMENT
    EXECUTE FUNCTION count_insert_form_conversations();

CREATE FUNCTION count_delete_form_conversations() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO storage_changes (tenant_id, kind, bytes)
    SELECT tenant_id, 'forms', -sum(bytes) FROM (
        SELECT tenant_id, 256 + octet_length(t.data::text) AS bytes FROM changed t
    ) counted
    GROUP BY tenant_id HAVING sum(bytes) > 0;
    RETURN NULL;
END $$;
CREATE TRIGGER count_delete_form_conversations AFTER DELETE ON form_conversations
    REFERENCING OLD TABLE AS changed FOR EACH STATEMENT
    EXECUTE FUNCTION count_delete_form_conversations();

CREATE FUNCTION count_update_form_conversations() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE change bigint :=
    (256 + octet_length(NEW.data::text))
    - (256 + octet_length(OLD.data::text));
BEGIN
    IF change <> 0 THEN
        INSERT INTO storage_changes (tenant_id, kind, bytes)
        VALUES (NEW.tenant_id, 'forms', change);
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER count_update_form_conversations AFTER UPDATE ON form_conversations
    FOR EACH ROW WHEN (OLD.data::text <> NEW.data::text)
    EXECUTE FUNCTION count_update_form_conversations();

CREATE FUNCTION count_insert_form_messages() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO storage_changes (tenant_id, kind, bytes)
    SELECT tenant_id, 'forms', sum(bytes) FROM (
        SELECT tenant_id, 256 + octet_length(t.content) AS bytes FROM changed t
    ) counted
    GROUP BY tenant_id HAVING sum(bytes) > 0;
    RETURN NULL;
END $$;
CREATE TRIGGER count_insert_form_messages AFTER INSERT ON form_messages
    REFERENCING NEW TABLE AS changed FOR EACH STATEMENT
    EXECUTE FUNCTION count_insert_form_messages();

CREATE FUNCTION count_delete_form_messages() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO storage_changes (tenant_id, kind, bytes)
    SELECT tenant_id, 'forms', -sum(bytes) FROM (
        SELECT tenant_id, 256 + octet_length(t.content) AS bytes FROM changed t
    ) counted
    GROUP BY tenant_id HAVING sum(bytes) > 0;
    RETURN NULL;
END $$;
CREATE TRIGGER count_delete_form_messages AFTER DELETE ON form_messages
    REFERENCING OLD TABLE AS changed FOR EACH STATEMENT
    EXECUTE FUNCTION count_delete_form_messages();
