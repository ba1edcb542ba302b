// docs/reference/reasons.md has an entry for each reason in conditions and Events that kcp writes, and no other.
import { expect } from 'chai'
import { globSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { moverErrors } from '#mover/contract/mover-error.ts'
import { storageReasons } from '#snapshot/index.ts'

const root = resolve(import.meta.dirname, '..')
const tests = '**/*.test.ts'
/** Where conditions and Events of ours are made; elsewhere are the reasons that Kubernetes has for its own kinds. */
const places = [
  'src/{crds,operator,placement,syncer}/**/*.ts',
  'src/agent/{enrol,start-agent}.ts',
  'src/controllers/{api-bindings,api-exports,export-transfer}.ts',
  'src/virtualapi/background/condition-reports/*.ts',
  'src/virtualapi/endpoints/views/member-views.ts',
]
/** Writes an Event of Kubernetes, as its garbage collector does. */
const foreignEvents = ['src/controllers/collect-object.ts']

/** Each has the expression of a reason as its group. */
const patterns: readonly RegExp[] = [
  // A property or a variable, or what stands for an absent one.
  /\breason(?:: | = | \?\? )((?:\$\{[^}]*\}|[^,;{}])*)/g,
  /\bcondition\(\s*'\w+',\s*'\w+',\s*([^,]*),/g,
  /\b(?:refuse|invalid|changed|said)\(\s*([^,]*),/g,
  /\blimited\(\s*[\w.]+,\s*([^,]*),/g,
  /\bleftOut\(\s*\w+,\s*([^,]*),/g,
  /\bconst \w+Reason = ([^\n]*)/g,
  /\bnew Obstacle\(\s*([^,]*),/g,
  // The state of a MemberCluster is the reason of its condition Schedulable.
  /\breadonly state: ([^\n]*)/g,
  // A condition that has become True is an Event with its type as the reason.
  /\bconst memberClusterConditions = (\[[^\]]*\])/g,
]

/** Names in quotes; a template has `${`. */
const namePattern = /['`]([A-Z](?:\w|\$\{[\w.]+\})*)['`]/g

const sources = globSync(places, { cwd: root, exclude: [tests] }).map((file) =>
  withoutNoise(readFileSync(join(root, file), 'utf8')),
)
const byPattern = patterns.map((pattern) => sources.flatMap((source) => reasonsIn(source, pattern)))
/** Those of movers are reasons of a VolumeMove, too; those of storages are reasons of stores and snapshots. */
const reasons = [...new Set([...byPattern.flat(), ...Object.keys(moverErrors), ...storageReasons])].sort()

const document = readFileSync(join(root, 'docs/reference/reasons.md'), 'utf8')
const headings = [...document.matchAll(/^### (\w+)$/gm)].map(([, name = '']) => name)
const rows = [...document.matchAll(/^\| `(\w+)` \|/gm)].map(([, name = '']) => name)
const entries = [...new Set([...headings, ...rows])].sort()

describe('docs/reference/reasons.md', () => {
  it('is compared with each way in which the code gives a reason', () => {
    expect(patterns.filter((_, i) => byPattern[i]?.length === 0)).to.deep.equal([])
    expect(reasons.length).to.be.greaterThan(100)
  })

  it('is compared with each place that writes Events', () => {
    const writers = globSync('src/**/*.ts', { cwd: root, exclude: [...places, tests] }).filter((file) =>
      /\b(?:newEvent|recordEvent|workloadEvent|warnOf|warnOnce)\(/.test(readFileSync(join(root, file), 'utf8')),
    )
    expect(writers).to.deep.equal(foreignEvents)
  })

  it('has an entry for each reason', () => {
    expect(reasons.filter((reason) => !entries.some((entry) => standsFor(reason, entry)))).to.deep.equal([])
  })

  it('has no entry without a reason in the code', () => {
    expect(entries.filter((entry) => !reasons.some((reason) => standsFor(reason, entry)))).to.deep.equal([])
  })

  it('has each heading once, and links only to its headings', () => {
    expect(headings.filter((name, i) => headings.indexOf(name) !== i)).to.deep.equal([])
    const anchors = new Set([...document.matchAll(/^#+ (.+)$/gm)].map(([, title = '']) => anchorOf(title)))
    const links = [...document.matchAll(/\]\(#([^)]+)\)/g)].map(([, anchor = '']) => anchor)
    expect(links.filter((anchor) => !anchors.has(anchor))).to.deep.equal([])
  })
})

/** The source without comments, and without what a condition compares. */
function withoutNoise(source: string): string {
  return source
    .replace(/^\s*\/?\*.*$/gm, '')
    .replace(/\/\/.*$/gm, '')
    .replace(/[!=]== '\w*'/g, '')
}

function reasonsIn(source: string, pattern: RegExp): string[] {
  return [...source.matchAll(pattern)].flatMap(([, expression = '']) =>
    [...expression.matchAll(namePattern)].map(([, name = '']) => name),
  )
}

/** Whether the entry is about this reason, or about one that its template makes. */
function standsFor(reason: string, entry: string): boolean {
  return new RegExp(`^${reason.replace(/\$\{[^}]*\}/g, '[A-Z]\\w*')}$`).test(entry)
}

/** As GitHub makes them. */
function anchorOf(title: string): string {
  return title
    .toLowerCase()
    .replace(/[^\w\- ]/g, '')
    .replaceAll(' ', '-')
}
