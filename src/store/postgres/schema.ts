// The tables and the function of the store. `keys` has a row for each object, `log` has every change with its value; a
// row of `keys` points to the row of the object's last change, so each value is stored once.

/** Raised by a layout that an older program cannot write. */
export const layout = 1

/** SQLSTATEs with which the function refuses a batch as a whole; nothing of it is written. */
export const batchRefusals = {
  /** The process has been replaced. */
  replaced: 'KC001',
  /** The batch waited for longer than the process may write. */
  late: 'KC002',
  /** The process has sent a newer batch meanwhile. */
  outdated: 'KC003',
} as const

/** Bits of a write in the call of the function. */
export const writeKinds = { create: 1, update: 2, delete: 3 } as const

/** Why the function refused a write; 0: it did not. */
export const refusals = { exists: 1, missing: 2, revision: 3 } as const

/** An identifier in quotation marks. */
export function quoted(identifier: string): string {
  return `"${identifier.replaceAll('"', '""')}"`
}

/** Statements that create the tables, for a schema (quoted) without them. */
export function createTables(schema: string): readonly string[] {
  return [
    `CREATE TABLE ${schema}.meta (
  one boolean PRIMARY KEY DEFAULT true CHECK (one),
  layout integer NOT NULL,
  instance text NOT NULL,
  owner text NOT NULL,
  key_id text NOT NULL,
  process uuid NOT NULL,
  revision bigint NOT NULL,
  -- Changes up to this revision may be missing from log.
  history_from bigint NOT NULL,
  -- Up to this revision, old changes have been deleted from log.
  trimmed bigint NOT NULL
)`,
    `CREATE TABLE ${schema}.keys (
  key bytea PRIMARY KEY,
  revision bigint NOT NULL,
  created bigint NOT NULL
) WITH (fillfactor = 80)`,
    `CREATE TABLE ${schema}.log (
  revision bigint PRIMARY KEY,
  key bytea NOT NULL,
  created bigint NOT NULL,
  -- The revision of the object before this change; NULL: it did not exist.
  previous bigint,
  -- NULL: the object was deleted.
  value bytea
)`,
    `CREATE TABLE ${schema}.writers (
  process uuid PRIMARY KEY,
  batch bigint NOT NULL,
  before bigint NOT NULL,
  answer bigint[] NOT NULL,
  at timestamptz NOT NULL
)`,
  ]
}

/**
 * The function that does a batch of writes in one transaction and one round trip. The lock on the row of `meta` makes
 * the order of revisions that of commits. A batch that is sent again is not done again: its answer is kept in `writers`.
 */
export function createFunction(schema: string, name: string): string {
  return `
CREATE FUNCTION ${schema}.${name}(
  p_process uuid, p_batch bigint, p_within_ms bigint, p_alone boolean, p_channel text,
  p_kinds integer[], p_key_ends integer[], p_keys bytea, p_value_ends integer[], p_values bytea,
  p_expected bigint[], p_above bigint[]
) RETURNS TABLE (o_before bigint, o_revision bigint, o_created bigint, o_refusal bigint, o_found bigint, o_previous bytea)
LANGUAGE plpgsql AS $function$
DECLARE
  v_process uuid;
  v_revision bigint;
  v_before bigint;
  v_answer bigint[];
  v_key bytea;
  v_value bytea;
  v_key_at integer := 0;
  v_value_at integer := 0;
  v_new bigint;
  v_created bigint;
  v_found bigint;
BEGIN
  SELECT m.process, m.revision INTO STRICT v_process, v_revision FROM ${schema}.meta m FOR NO KEY UPDATE;
  IF p_alone AND v_process <> p_process THEN
    RAISE EXCEPTION USING ERRCODE = '${batchRefusals.replaced}', MESSAGE = 'a newer process writes these data';
  END IF;
  -- A batch that was given up may arrive late, in the buffer of a broken connection.
  IF EXISTS (SELECT FROM ${schema}.writers w WHERE w.process = p_process AND w.batch > p_batch) THEN
    RAISE EXCEPTION USING ERRCODE = '${batchRefusals.outdated}', MESSAGE = 'a newer batch was sent';
  END IF;
  SELECT w.before, w.answer INTO v_before, v_answer FROM ${schema}.writers w
    WHERE w.process = p_process AND w.batch = p_batch;
  IF NOT FOUND THEN
    IF clock_timestamp() - statement_timestamp() > p_within_ms * interval '1 millisecond' THEN
      RAISE EXCEPTION USING ERRCODE = '${batchRefusals.late}', MESSAGE = 'the batch waited for too long';
    END IF;
    v_before := v_revision;
    FOR i IN 1 .. cardinality(p_kinds) LOOP
      v_key := substring(p_keys FROM v_key_at + 1 FOR p_key_ends[i] - v_key_at);
      v_key_at := p_key_ends[i];
      v_created := NULL;
      v_new := v_revision + 1;
      IF p_kinds[i] = ${writeKinds.delete} THEN
        DELETE FROM ${schema}.keys k WHERE k.key = v_key AND k.revision = p_expected[i] RETURNING k.created INTO v_created;
        v_value := NULL;
      ELSE
        v_value := substring(p_values FROM v_value_at + 1 FOR p_value_ends[i] - v_value_at);
        v_value_at := p_value_ends[i];
        IF p_kinds[i] = ${writeKinds.create} THEN
          v_new := greatest(v_revision, p_above[i]) + 1;
          INSERT INTO ${schema}.keys AS k (key, revision, created) VALUES (v_key, v_new, v_new)
            ON CONFLICT DO NOTHING RETURNING k.created INTO v_created;
        ELSE
          UPDATE ${schema}.keys k SET revision = v_new WHERE k.key = v_key AND k.revision = p_expected[i]
            RETURNING k.created INTO v_created;
        END IF;
      END IF;
      IF v_created IS NOT NULL THEN
        INSERT INTO ${schema}.log (revision, key, created, previous, value)
          VALUES (v_new, v_key, v_created, nullif(p_expected[i], 0), v_value);
        v_revision := v_new;
        v_answer := v_answer || ARRAY[v_new, v_created, 0, 0];
      ELSE
        SELECT k.revision INTO v_found FROM ${schema}.keys k WHERE k.key = v_key;
        v_answer := v_answer || ARRAY[0, 0, CASE
          WHEN p_kinds[i] = ${writeKinds.create} THEN ${refusals.exists}
          WHEN v_found IS NULL THEN ${refusals.missing}
          ELSE ${refusals.revision} END, coalesce(v_found, 0)];
      END IF;
    END LOOP;
    UPDATE ${schema}.meta SET revision = v_revision;
    INSERT INTO ${schema}.writers AS w (process, batch, before, answer, at)
      VALUES (p_process, p_batch, v_before, v_answer, now())
      ON CONFLICT (process) DO UPDATE
        SET batch = excluded.batch, before = excluded.before, answer = excluded.answer, at = excluded.at;
    IF NOT p_alone AND v_revision > v_before THEN
      PERFORM pg_notify(p_channel, '');
    END IF;
  END IF;
  RETURN QUERY
    SELECT v_before, v_answer[4 * i - 3], v_answer[4 * i - 2], v_answer[4 * i - 1], v_answer[4 * i],
      CASE WHEN p_kinds[i] = ${writeKinds.delete} THEN (
        SELECT p.value FROM ${schema}.log p WHERE p.revision = p_expected[i] AND v_answer[4 * i - 3] > 0
      ) END
    FROM generate_series(1, cardinality(p_kinds)) AS i ORDER BY i;
END $function$;`
}
