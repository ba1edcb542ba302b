// The answers of structured-merge-diff: its own tests and random ones run in a copy of the module that writes down
// every question with its answer. The copy is made and compiled outside the checkout.
import { createHash } from 'node:crypto'
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import type { JsonValue } from '#apimachinery/meta/index.ts'
import { cacheDir, repositoryRoot } from '#test/support/cache-dir.ts'
import { runCommand } from '#test/support/command.ts'
import { withFileLock } from '#test/support/file-lock.ts'
import type { RecordedType } from './recorded-type.ts'

const version = 'v6.3.0'
const program = join(repositoryRoot, 'test', 'programs', 'structured-merge-diff')

export interface RecordedObject {
  readonly schema: { readonly process: number; readonly id: number }
  readonly type: RecordedType
  readonly value: JsonValue
}

/** One question with its answer; which members there are depends on `op`. */
export type Fact = RecordedObject & { readonly op: string } & Readonly<Record<string, JsonValue>>

/** Every fact: those of upstream's tests, and of `rounds` random stories from `seed` on. */
export async function recordedFacts({ seed, rounds }: { seed: number; rounds: number }): Promise<Fact[]> {
  const copy = await recordingCopy()
  const work = mkdtempSync(join(copy, '..', '.facts-'))
  const file = join(work, 'facts.jsonl')
  try {
    await runCommand('go', ['test', '-count=1', '-p', '1', './typed/...', './merge/...', './fieldpath/...'], {
      cwd: copy,
      env: { KCP_FACTS: file, KCP_SEED: String(seed), KCP_ROUNDS: String(rounds), GOWORK: 'off', GOFLAGS: '' },
      timeoutMs: 20 * 60_000,
    })
    return readFileSync(file, 'utf8')
      .split('\n')
      .filter((line) => line !== '')
      .map((line) => JSON.parse(line) as Fact)
  } finally {
    rmSync(work, { recursive: true, force: true })
  }
}

/** The functions that are recorded: renamed in the copy, and called by what takes their names. */
const renamed: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  'typed/typed.go': {
    'func (tv TypedValue) Validate(': 'func (tv TypedValue) validateUnrecorded(',
    'func (tv TypedValue) ToFieldSet(': 'func (tv TypedValue) toFieldSetUnrecorded(',
    'func (tv TypedValue) Merge(': 'func (tv TypedValue) mergeUnrecorded(',
    'func (tv TypedValue) Compare(': 'func (tv TypedValue) compareUnrecorded(',
    'func (tv TypedValue) RemoveItems(': 'func (tv TypedValue) removeItemsUnrecorded(',
  },
  'typed/reconcile_schema.go': { 'func ReconcileFieldSetWithSchema(': 'func reconcileUnrecorded(' },
  'merge/update.go': {
    'func (s *Updater) Update(': 'func (s *Updater) updateUnrecorded(',
    'func (s *Updater) Apply(': 'func (s *Updater) applyUnrecorded(',
  },
}

/** Where the files of test/programs go. */
const added: Readonly<Record<string, string>> = {
  'recorder/record.go': 'record/record.go',
  'overlay/fieldpath.go': 'fieldpath/recorded.go',
  'overlay/typed.go': 'typed/recorded.go',
  'overlay/merge.go': 'merge/recorded.go',
  'overlay/merge_random_test.go': 'merge/random_recorded_test.go',
}

async function recordingCopy(): Promise<string> {
  const hash = createHash('sha256')
    .update(version)
    .update(JSON.stringify([renamed, added]))
  for (const file of Object.keys(added)) hash.update(readFileSync(join(program, file)))
  const dir = join(cacheDir(), 'programs', `structured-merge-diff-${hash.digest('hex').slice(0, 16)}`)
  const copy = join(dir, 'copy')
  if (existsSync(copy)) return copy
  mkdirSync(dir, { recursive: true })
  await withFileLock(join(dir, '.lock'), async () => {
    if (!existsSync(copy)) await makeCopy(copy)
  })
  return copy
}

async function makeCopy(copy: string): Promise<void> {
  const work = mkdtempSync(`${copy}-`)
  cpSync(await moduleFolder(), work, { recursive: true })
  makeWritable(work)
  for (const [file, names] of Object.entries(renamed)) {
    let text = readFileSync(join(work, file), 'utf8')
    for (const [from, to] of Object.entries(names)) {
      if (!text.includes(from)) throw new Error(`${file} of structured-merge-diff ${version} has no "${from}"`)
      text = text.replace(from, to)
    }
    writeFileSync(join(work, file), text)
  }
  for (const [from, to] of Object.entries(added)) {
    mkdirSync(join(work, to, '..'), { recursive: true })
    cpSync(join(program, from), join(work, to))
  }
  renameSync(work, copy)
}

async function moduleFolder(): Promise<string> {
  const { stdout } = await runCommand(
    'go',
    ['mod', 'download', '-json', `sigs.k8s.io/structured-merge-diff/v6@${version}`],
    { env: { GOWORK: 'off', GOFLAGS: '' }, cwd: repositoryRoot },
  )
  return (JSON.parse(stdout) as { Dir: string }).Dir
}

/** Files in the module cache are read-only, and so are copies of them. */
function makeWritable(folder: string): void {
  chmodSync(folder, 0o755)
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    const path = join(folder, entry.name)
    if (entry.isDirectory()) makeWritable(path)
    else chmodSync(path, 0o644)
  }
}
