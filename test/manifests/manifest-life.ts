// Puts a set of manifests through every kubectl operation from apply to delete, and records kubectl's output.
import { expect } from 'chai'
import { createHash } from 'node:crypto'
import { chmodSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseAllDocuments } from 'yaml'
import { ensurePrograms, kubectl, kubectlEnvironment, runCommand } from '#test/support/index.ts'

/** The objects of one file, in order. */
export interface ManifestSet {
  readonly title: string
  readonly file: string
  readonly objects: readonly Manifest[]
}
export interface Manifest {
  readonly apiVersion: string
  readonly kind: string
  readonly metadata: { readonly name: string; readonly namespace?: string; readonly labels?: Record<string, string> }
}

/** The cluster of a set: a logical cluster, or a real one for comparison. */
export interface Home {
  readonly kubeconfig: string
  /** Whether controllers run that remove finalizers of deleted objects. */
  readonly hasControllers: boolean
}

/** kubectl's output where it does not follow from the set. A logical cluster and a real one must agree on it. */
export type Transcript = readonly { readonly step: string; readonly code: number; readonly said: string }[]

const scalable = new Set(['Deployment', 'StatefulSet', 'ReplicationController'])
/** Kinds that `apply --prune` deletes by default. */
const prunable = new Set(
  'ConfigMap Endpoints Namespace PersistentVolumeClaim PersistentVolume Pod ReplicationController Secret Service Job CronJob Ingress DaemonSet Deployment ReplicaSet StatefulSet'.split(
    ' ',
  ),
)

/** Writes the manifests in `texts` as one set into `dir`. */
export function writeSet(dir: string, title: string, texts: readonly string[]): ManifestSet {
  const file = join(dir, `${title.replaceAll(/[^A-Za-z0-9]+/g, '-')}.yaml`)
  const text = texts.join('\n---\n')
  writeFileSync(file, text)
  return { title, file, objects: objectsOf(text) }
}

/** Writes an EDITOR script into `dir` that adds a finalizer, and returns its path. */
export function writeEditor(dir: string): string {
  const editor = join(dir, 'editor')
  writeFileSync(editor, '#!/bin/sh\nsed -i "0,/^metadata:/s//metadata:\\n  finalizers: [test.dev\\/edited]/" "$1"\n')
  chmodSync(editor, 0o755)
  return editor
}

/** Runs all operations on a set. Checks here what must hold everywhere; the transcript is for comparison. */
export async function live(set: ManifestSet, home: Home, { editor }: { editor: string }): Promise<Transcript> {
  const { file, objects } = set
  const { kubectl: program } = await ensurePrograms(['kubectl'])
  const transcript: { step: string; code: number; said: string }[] = []
  const ask = async (...args: string[]): Promise<{ code: number; stdout: string; stderr: string }> =>
    runCommand(program, ['--kubeconfig', home.kubeconfig, ...args], {
      env: { ...kubectlEnvironment(home.kubeconfig), KUBE_EDITOR: editor },
      expectCode: 'any',
    })
  const note = async (step: string, ...args: string[]): Promise<string> => {
    const { code, stdout, stderr } = await ask(...args)
    const errors = code === 0 ? '' : stderr
    transcript.push({ step, code, said: withoutInside(errors + stdout) })
    return stdout
  }
  const run = async (...args: string[]): Promise<string> => {
    const { code, stdout, stderr } = await ask(...args)
    expect(code, `${args.join(' ')}: ${stderr}`).to.equal(0)
    return stdout
  }
  const every = (text: string, end: string): void => {
    expect(text.split('\n').filter((line) => line.endsWith(end))).to.have.length(objects.length)
  }
  const versions = ['get', '-f', file, '-o', 'jsonpath={.items[*].metadata.resourceVersion}']

  every(await run('apply', '-f', file), ' created')
  const before = await run(...versions)
  await note('apply again', 'apply', '-f', file)
  expect(await run(...versions), 'a second apply changed something').to.equal(before)
  expect(await run('diff', '-f', file)).to.equal('') // exit code 0: no difference
  transcript.push({ step: 'get', code: 0, said: firstColumn(await run('get', '-f', file, '-o', 'wide')) })
  expect((await run('describe', '-f', file)).match(/^Name: /gm)).to.have.length(objects.length)
  every(await run('label', '-f', file, 'team=a'), ' labeled')
  every(await run('annotate', '-f', file, 'note=b'), ' annotated')
  const patch = '{"metadata":{"annotations":{"patched":"yes"}}}'
  every(await run('patch', '-f', file, '--type=merge', '-p', patch), ' patched')
  const labelled = ['--for=jsonpath={.metadata.labels.team}=a', '--timeout=20s']
  every(await run('wait', ...labelled, '-f', file), ' condition met')
  await note('apply what others added to', 'apply', '-f', file)
  const [first] = objects
  const namespace = first?.metadata.namespace === undefined ? [] : ['-n', first.metadata.namespace]
  const scaled = objects.filter(({ kind }) => scalable.has(kind))
  for (const inItsOwn of new Set(scaled.map(({ metadata }) => metadata.namespace))) {
    const here = scaled.filter((object) => object.metadata.namespace === inItsOwn)
    const names = here.map(({ kind, metadata }) => `${kind}/${metadata.name}`)
    const there = inItsOwn === undefined ? [] : ['-n', inItsOwn]
    await note('scale', 'scale', ...names, '--replicas=7', ...there)
    const wanted = names.map(() => '7')
    const template = '{range .items[*]}{.spec.replicas} {end}'
    const found = await run('get', ...names, names[0]!, '-o', `jsonpath=${template}`, ...there)
    expect(found.trim().split(' ')).to.deep.equal([...wanted, '7'])
  }
  const edited = `${first?.kind ?? ''}/${first?.metadata.name ?? ''}`
  expect(await run('edit', edited, ...namespace)).to.match(/ edited\n$/)
  const unedit =
    '[{"op":"test","path":"/metadata/finalizers/0","value":"test.dev/edited"},{"op":"remove","path":"/metadata/finalizers"}]'
  expect(await run('patch', edited, '--type=json', '-p', unedit, ...namespace)).to.match(/ patched\n$/)
  await note('replace', 'replace', '-f', file)
  await prune(set, { note, run })
  await note(
    'delete',
    'delete',
    '-f',
    file,
    '--ignore-not-found',
    ...(home.hasControllers ? ['--timeout=60s'] : ['--wait=false']),
  )
  if (home.hasControllers) expect(await run('get', '-f', file, '--ignore-not-found')).to.equal('')
  return transcript
}

/** Applies the whole set by label, then only the first object: the others must be pruned if their kind is prunable. */
async function prune(
  { file, title, objects }: ManifestSet,
  {
    note,
    run,
  }: { note: (step: string, ...args: string[]) => Promise<string>; run: (...args: string[]) => Promise<string> },
): Promise<void> {
  if (objects.filter(({ kind }) => prunable.has(kind)).length < 2) return
  const value = title.replaceAll(/[^A-Za-z0-9]+/g, '-')
  const all = objects.map((object) => ({
    ...object,
    metadata: { ...object.metadata, labels: { ...object.metadata.labels, 'test.dev/set': value } },
  }))
  const whole = `${file}.labelled`
  const part = `${file}.part`
  writeFileSync(whole, all.map((object) => JSON.stringify(object)).join('\n---\n'))
  const kept = all.find(({ kind }) => prunable.has(kind))
  writeFileSync(part, JSON.stringify(kept))
  const selected = ['--prune', '-l', `test.dev/set=${value}`]
  expect(await run('apply', '-f', whole, ...selected)).to.not.match(/ pruned\n/)
  expect(await note('prune', 'apply', '-f', part, ...selected)).to.match(/ pruned\n/)
}

/** The words of a table's header, and the names below it. */
function firstColumn(table: string): string {
  const lines = table.split('\n').map((line) => line.trim())
  return lines
    .map((line) => (line.startsWith('NAME ') ? line.replaceAll(/ +/g, ' ') : line.split(' ', 1)[0]))
    .join('\n')
}

/** Removes Go struct dumps that a real server prints for immutable fields; only its implementation has them. */
function withoutInside(said: string): string {
  return said.replaceAll(/Invalid value: \{.*\}: field is immutable/g, 'Invalid value: {}: field is immutable')
}

/** All documents of a file that are objects. */
function objectsOf(text: string): Manifest[] {
  return parseAllDocuments(text, { version: '1.1' }) // as kubectl reads it: 0644 is octal
    .map((document) => document.toJS() as Manifest | null)
    .filter((object) => object !== null)
}

/** The contents of manifest files. */
export function textsOf(files: readonly string[]): string[] {
  return files.map((file) => readFileSync(file, 'utf8'))
}

/** Digests of the explain output of every built-in kind in these sets, by kind. */
export async function explainKinds(
  sets: readonly ManifestSet[],
  { kubeconfig }: Home,
): Promise<Record<string, string>> {
  const kinds = sets.flatMap(({ objects }) =>
    objects.filter(isBuiltIn).map((object) => `${object.apiVersion} ${object.kind}`),
  )
  const explained: Record<string, string> = {}
  for (const found of [...new Set(kinds)].sort()) {
    const [version = '', kind = ''] = found.split(' ')
    const { stdout } = await kubectl(kubeconfig, ['explain', kind, `--api-version=${version}`])
    explained[found] = createHash('sha256').update(stdout).digest('hex').slice(0, 16)
  }
  return explained
}

/** Whether a server without CustomResourceDefinitions serves the kind. */
function isBuiltIn({ apiVersion }: Manifest): boolean {
  const [group = ''] = apiVersion.split('/')
  return !group.includes('.') || (group.endsWith('.k8s.io') && group !== 'snapshot.storage.k8s.io')
}
