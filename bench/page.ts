// Writes the numbers and charts of docs/benchmarks.md from the newest results in bench/results.
//   node bench/page.ts [--check]     With --check nothing is written: the exit code is 1 if the page is not up to date.
import { globSync, readFileSync, writeFileSync } from 'node:fs'
import { basename, join, resolve } from 'node:path'
import type { Numbers } from './measurement.ts'

interface Saved {
  readonly date: string
  readonly machine: string
  readonly loadAverage: string
  readonly commit: string
  readonly results: Readonly<Record<string, Numbers>>
}
/** The newest numbers of one row, with the run that they are from. */
interface Newest {
  readonly run: Saved
  readonly numbers: Numbers
}
interface Line {
  readonly row: string
  readonly what: string
  /** Of a ratio to kube-apiserver with etcd: the work, as the row names it. */
  readonly work?: string
  readonly show: (numbers: Numbers) => string
  readonly goal?: string
  /** Whether the goal is reached; only with `goal`. */
  readonly met?: (numbers: Numbers) => boolean
}

const root = resolve(import.meta.dirname, '..')
const page = join(root, 'docs/benchmarks.md')
const runs = globSync('*.json', { cwd: join(root, 'bench/results') })
  .map((name) => JSON.parse(readFileSync(join(root, 'bench/results', name), 'utf8')) as Saved)
  .sort((a, b) => a.date.localeCompare(b.date))

const of = (numbers: Numbers, name: string): number => numbers[name] ?? NaN
const ratio = 'ratio of requests/CPU-s'
const heapOfBinding = 'KiB of live heap per binding beyond an object of its size'

function ratioLine(row: string, work: string, goal?: number): Line {
  return {
    row,
    work,
    what: `${work}: requests per CPU-second against kube-apiserver with etcd`,
    show: (numbers) => `${of(numbers, `${work}: ${ratio}`)}x`,
    ...(goal !== undefined && { goal: `${goal}x`, met: (numbers) => of(numbers, `${work}: ${ratio}`) >= goal }),
  }
}

function neighbourLine(flood: string): Line {
  return {
    row: 'neighbours',
    what: `p99 of others while one floods with ${flood}, against their quiet p99`,
    show: (numbers) => `${of(numbers, `${flood}: times the quiet p99`)}x, ${of(numbers, `${flood}: p99 ms`)} ms`,
    goal: '2x',
    met: (numbers) => of(numbers, `${flood}: times the quiet p99`) <= 2,
  }
}

const lines: readonly Line[] = [
  ratioLine('ratios', 'GET', 2),
  ratioLine('ratios', 'LIST 500', 4),
  ratioLine('ratios', 'LIST 10,000', 5),
  ratioLine('ratios', 'create', 3),
  ratioLine('apply', 'apply', 3),
  ratioLine('apply', 'create checked by CEL', 3),
  {
    row: 'start',
    what: '`kcp start` to the first answer of kubectl; resident memory 5 s later',
    show: (numbers) => `${of(numbers, 'start seconds')} s, ${of(numbers, 'idle MiB')} MiB`,
    goal: '1 s, 120 MiB',
    met: (numbers) => of(numbers, 'start seconds') <= 1 && of(numbers, 'idle MiB') <= 120,
  },
  {
    row: 'envtest',
    what: 'kube-apiserver and etcd for suites of controllers: start, memory; upstream',
    show: (numbers) =>
      `${of(numbers, 'start s, ours')} s, ${of(numbers, 'idle MiB, ours')} MiB; ${of(numbers, 'start s, upstream')} s, ${of(numbers, 'idle MiB, upstream')} MiB`,
  },
  {
    row: 'create',
    what: 'a LogicalCluster created to its first answer, p50 / p99',
    show: (numbers) => `${of(numbers, 'p50 ms')} / ${of(numbers, 'p99 ms')} ms`,
    goal: '5 / 25 ms',
    met: (numbers) => of(numbers, 'p50 ms') <= 5 && of(numbers, 'p99 ms') <= 25,
  },
  {
    row: 'tenthousand',
    what: '10,000 LogicalClusters Ready; memory with them',
    show: (numbers) => `${of(numbers, 'seconds until Ready')} s, ${of(numbers, 'MiB at the last one')} MiB`,
    goal: '30 s, 512 MiB',
    met: (numbers) => of(numbers, 'seconds until Ready') <= 30 && of(numbers, 'MiB at the last one') <= 512,
  },
  {
    row: 'hundredthousand',
    what: '100,000 LogicalClusters in one process: Ready a second, memory; after kill -9: answers, first GET of a cold one p99, memory',
    show: (numbers) =>
      `${of(numbers, 'Ready a second')}, ${of(numbers, 'MiB with them')} MiB; ${of(numbers, 'last one answers after kill -9, seconds')} s, ${of(numbers, 'first GET of a cold one p99 ms')} ms, ${of(numbers, 'MiB after the restart')} MiB`,
    goal: '2,000/s; 5 s, 10 ms',
    met: (numbers) =>
      of(numbers, 'Ready a second') >= 2000 &&
      of(numbers, 'last one answers after kill -9, seconds') <= 5 &&
      of(numbers, 'first GET of a cold one p99 ms') <= 10,
  },
  {
    row: 'tree',
    what: '10,000 in a tree of depth 5 against flat ones: created a second, memory each, GET with an inherited role, p50; edit at the top in force in a leaf',
    show: (numbers) =>
      `${of(numbers, 'tree: created per second')} against ${of(numbers, 'flat: created per second')}, ${of(numbers, 'tree: KiB each')} against ${of(numbers, 'flat: KiB each')} KiB, ${of(numbers, 'allowed in a leaf by an inherited role p50 ms')} against ${of(numbers, 'allowed in a flat one p50 ms')} ms; ${of(numbers, 'edit at the top until it counts in a leaf, slowest ms')} ms`,
    goal: '1.2x latency, 100 ms',
    met: (numbers) =>
      of(numbers, 'allowed in a leaf by an inherited role p50 ms') <=
        1.2 * of(numbers, 'allowed in a flat one p50 ms') &&
      of(numbers, 'edit at the top until it counts in a leaf, slowest ms') <= 100,
  },
  {
    row: 'sleep',
    what: '1,000 logical clusters with a Deployment each, asleep: memory of kcp (awake), CPU of kcp a second, pods in the member; waking: answer to the first write, p50 and p99; from it to Available, p50',
    show: (numbers) =>
      `${of(numbers, 'MiB of kcp, all asleep')} (${of(numbers, 'MiB of kcp, all awake')}) MiB, ${of(numbers, 'CPU ms of kcp a second, all asleep')} ms, ${of(numbers, 'pods in the member, all asleep')}; ${of(numbers, 'waking: answer to the first write p50 ms')} and ${of(numbers, 'waking: answer to the first write p99 ms')} ms; ${of(numbers, 'waking: first write to Available p50 ms')} ms`,
  },
  {
    row: 'snapshots',
    what: 'a logical cluster with 10,000 objects under 200 writes/s: save, copy, restore; longest wait of a neighbour, and without them; 1,000 copies of one with 500 objects, each and in all',
    show: (numbers) =>
      `${['save', 'copy', 'restore'].map((name) => of(numbers, `${name}: seconds`)).join(', ')} s; ${Math.max(...['save', 'copy', 'restore'].map((name) => of(numbers, `${name}: neighbour longest ms`)))} against ${of(numbers, 'nothing: neighbour longest ms')} ms; ${of(numbers, 'copies: p50 ms, one after the other')} ms, ${of(numbers, 'copies: seconds for all')} s`,
    goal: '50 ms',
    met: (numbers) => ['save', 'copy', 'restore'].every((name) => of(numbers, `${name}: neighbour longest ms`) <= 50),
  },
  {
    row: 'volumes',
    what: '10 GiB in 10 files by movers against rsync -aAHSX: first copy, 1 % changed, final round against rsync --checksum; the final round of 100,000 small files',
    show: (numbers) =>
      [
        ['large: first copy', 'rsync'],
        ['large: 1 % changed', 'rsync'],
        ['large: final', 'rsync --checksum'],
        ['small: final', 'rsync --checksum'],
      ]
        .map(([part, other]) => of(numbers, `${part}, mover seconds`) / of(numbers, `${part}, ${other} seconds`))
        .map((times) => `${times.toFixed(2)}x`)
        .join(', '),
    goal: '1.5x, 1.5x, 2x, 2x',
    met: (numbers) =>
      of(numbers, 'large: first copy, mover seconds') <= 1.5 * of(numbers, 'large: first copy, rsync seconds') &&
      of(numbers, 'large: 1 % changed, mover seconds') <= 1.5 * of(numbers, 'large: 1 % changed, rsync seconds') &&
      of(numbers, 'large: final, mover seconds') <= 2 * of(numbers, 'large: final, rsync --checksum seconds') &&
      of(numbers, 'small: final, mover seconds') <= 2 * of(numbers, 'small: final, rsync --checksum seconds'),
  },
  {
    row: 'exports',
    what: '10,000 consumers of an export: bound to served, p50 / p99; live heap of a binding beyond an object of its size; list of 100,000 objects through the view against all logical clusters; write to event through the view against that, p99',
    show: (numbers) =>
      `${of(numbers, 'bind to served p50 ms')} / ${of(numbers, 'bind to served p99 ms')} ms; ${of(numbers, heapOfBinding)} KiB; ${of(numbers, 'times as long')}x; ${of(numbers, 'write to event through the view p99 ms')} against ${of(numbers, 'write to event over all p99 ms')} ms`,
    goal: '1 KiB',
    met: (numbers) => of(numbers, heapOfBinding) <= 1,
  },
  {
    row: 'restart',
    what: 'restart with a million objects to the first answer; first GET in a logical cluster, p50 / p99',
    show: (numbers) =>
      `${of(numbers, 'start seconds')} s; ${of(numbers, 'first GET p50 ms')} / ${of(numbers, 'first GET p99 ms')} ms`,
  },
  {
    row: 'crd',
    what: 'CustomResourceDefinition to its first object, p50; kube-apiserver',
    show: (numbers) => `${of(numbers, 'kcp p50 ms')} ms; ${of(numbers, 'kube-apiserver p50 ms')} ms`,
    goal: '20 ms',
    met: (numbers) => of(numbers, 'kcp p50 ms') <= 20,
  },
  {
    row: 'fan-out',
    what: 'lag of 1,000 watchers at 100 updates a second, p50 / p99; kube-apiserver',
    show: (numbers) =>
      `${of(numbers, 'kcp: p50 ms')} / ${of(numbers, 'kcp: p99 ms')} ms; ${of(numbers, 'kube-apiserver: p50 ms')} / ${of(numbers, 'kube-apiserver: p99 ms')} ms`,
    goal: 'p99 100 ms',
    met: (numbers) => of(numbers, 'kcp: p99 ms') <= 100,
  },
  {
    row: 'idle',
    what: 'memory with 10,000 watches; kube-apiserver',
    show: (numbers) =>
      `${of(numbers, 'kcp: MiB with 10000 watches')} MiB; ${of(numbers, 'kube-apiserver: MiB with 10000 watches')} MiB`,
    goal: '400 MiB',
    met: (numbers) => of(numbers, 'kcp: MiB with 10000 watches') <= 400,
  },
  ...['creates', 'lists', 'bodies', 'watches'].map(neighbourLine),
  {
    row: 'pull',
    what: 'a member in pull mode against push mode: Deployments a second into it; apply to the copy, p50; CPU of kcp for a Deployment',
    show: (numbers) =>
      `${of(numbers, 'pull to push, Deployments/s')}x, ${of(numbers, 'pull to push, apply to the copy in the member')}x, ${of(numbers, 'pull to push, CPU of kcp per Deployment')}x`,
    goal: '0.7x of the rate',
    met: (numbers) => of(numbers, 'pull to push, Deployments/s') >= 0.7,
  },
  {
    row: 'tunnel',
    what: 'GET through the tunnel of an agent, p50, against directly; its p99 beside 500 watches and 16 clients that do not read, against alone',
    show: (numbers) =>
      `${of(numbers, 'alone: tunnel p50 ms')} against ${of(numbers, 'alone: direct p50 ms')} ms; ${of(numbers, 'p99 beside them to p99 alone, through the tunnel')}x`,
    goal: '2x',
    met: (numbers) => of(numbers, 'p99 beside them to p99 alone, through the tunnel') <= 2,
  },
  {
    row: 'sync',
    what: 'a Deployment applied to its copy in the member, p50 / p99',
    show: (numbers) =>
      `${of(numbers, 'apply to the copy in the member p50 ms')} / ${of(numbers, 'apply to the copy in the member p99 ms')} ms`,
    goal: '100 / 500 ms',
    met: (numbers) =>
      of(numbers, 'apply to the copy in the member p50 ms') <= 100 &&
      of(numbers, 'apply to the copy in the member p99 ms') <= 500,
  },
  {
    row: 'sync',
    what: 'the same to Available upstream, p50; writes of it until then',
    show: (numbers) =>
      `${of(numbers, 'apply to Available upstream p50 ms')} ms; ${of(numbers, 'writes of a Deployment upstream from apply to Available p50')}`,
    goal: '3 writes',
    met: (numbers) => of(numbers, 'writes of a Deployment upstream from apply to Available p50') <= 3,
  },
  {
    row: 'sync',
    what: 'ConfigMaps into the member',
    show: (numbers) => `${of(numbers, 'ConfigMaps/s into the member')} a second`,
    goal: '500 a second',
    met: (numbers) => of(numbers, 'ConfigMaps/s into the member') >= 500,
  },
  {
    row: 'sync-many',
    what: '1,000 Deployments at once, Available upstream',
    show: (numbers) => `${of(numbers, 'seconds until 1,000 Deployments are Available upstream')} s`,
  },
]

function newest(row: string): Newest | undefined {
  const run = runs.findLast(({ results }) => results[row] !== undefined)
  const numbers = run?.results[row]
  return run && numbers && { run, numbers }
}

function table(): string {
  const rows = lines.flatMap(({ row, what, show, goal = '', met }) => {
    const found = newest(row)
    if (found === undefined) return []
    const verdict = met === undefined ? goal : `${goal}${met(found.numbers) ? '' : ', **missed**'}`
    return [`| \`${row}\` | ${what} | ${show(found.numbers)} | ${verdict} | ${found.run.commit} |`]
  })
  const used = new Set(lines.flatMap(({ row }) => newest(row)?.run ?? []))
  const conditions = [...used].map(
    ({ commit, date, machine, loadAverage }) => `${commit}: ${date.slice(0, 10)}, ${machine}, ${loadAverage}.`,
  )
  return ['| row | what | measured | goal | commit |', '|---|---|---|---|---|', ...rows, '', ...conditions].join('\n')
}

interface Bar {
  readonly label: string
  readonly value: number
  readonly text: string
  readonly isOther?: boolean
}

/** Horizontal bars, the longest as wide as the chart. */
function chart(title: string, bars: readonly Bar[]): string {
  const [width, left, height] = [420, 250, 26]
  const most = Math.max(...bars.map(({ value }) => value))
  const rows = bars.map(({ label, value, text, isOther = false }, index) => {
    const [y, length] = [40 + index * height, Math.max(1, Math.round((value / most) * width))]
    return [
      `<text x="${left - 8}" y="${y + 14}" text-anchor="end">${label}</text>`,
      `<rect x="${left}" y="${y}" width="${length}" height="18" rx="2" fill="${isOther ? '#9aa5b1' : '#2f6fde'}"/>`,
      `<text x="${left + length + 6}" y="${y + 14}">${text}</text>`,
    ].join('\n')
  })
  const size = `width="${left + width + 120}" height="${50 + bars.length * height}"`
  const head = `<svg xmlns="http://www.w3.org/2000/svg" ${size} font-family="sans-serif" font-size="13" fill="#24292f">`
  return [head, `<text x="8" y="22" font-weight="bold">${title}</text>`, ...rows, '</svg>', ''].join('\n')
}

function requestsChart(): string {
  const bars = lines.flatMap(({ row, work }): Bar[] => {
    const value = of(newest(row)?.numbers ?? {}, `${work ?? ''}: ${ratio}`)
    return work === undefined || Number.isNaN(value) ? [] : [{ label: work, value, text: `${value}x` }]
  })
  const reference = { label: 'kube-apiserver with etcd', value: 1, text: '1x', isOther: true }
  return chart('Requests per CPU-second', [...bars, reference])
}

function memoryChart(): string {
  const bar = (label: string, row: string, name: string, isOther = false): Bar[] => {
    const value = of(newest(row)?.numbers ?? {}, name)
    return Number.isNaN(value) ? [] : [{ label, value, text: `${value} MiB`, isOther }]
  }
  return chart('Resident memory', [
    ...bar('kube-apiserver with etcd, idle', 'idle', 'kube-apiserver: MiB before', true),
    ...bar('kcp, idle', 'start', 'idle MiB'),
    ...bar('kcp, 1,000 logical clusters', 'thousand', 'MiB at the last one'),
    ...bar('kcp, 10,000 logical clusters', 'tenthousand', 'MiB at the last one'),
    ...bar('kube-apiserver, 10,000 watches', 'idle', 'kube-apiserver: MiB with 10000 watches', true),
    ...bar('kcp, 10,000 watches', 'idle', 'kcp: MiB with 10000 watches'),
  ])
}

const [begin, end] = ['<!-- numbers: written by node bench/page.ts -->', '<!-- /numbers -->']
const text = readFileSync(page, 'utf8')
const [before = '', rest = ''] = text.split(begin)
const after = rest.split(end)[1]
if (after === undefined) throw new Error(`${page} has no ${begin} with ${end}`)
const files: Readonly<Record<string, string>> = {
  [page]: `${before}${begin}\n${table()}\n${end}${after}`,
  [join(root, 'docs/images/requests.svg')]: requestsChart(),
  [join(root, 'docs/images/memory.svg')]: memoryChart(),
}
for (const [file, wanted] of Object.entries(files)) {
  const found = globSync(file).length === 0 ? '' : readFileSync(file, 'utf8')
  if (found === wanted) continue
  if (process.argv.includes('--check')) {
    console.error(`${basename(file)} is not what bench/results has: run node bench/page.ts`)
    process.exitCode = 1
  } else writeFileSync(file, wanted)
}
