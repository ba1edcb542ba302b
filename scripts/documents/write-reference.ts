// Writes the parts of the documents that are made from the code and from measurements.
//   node scripts/documents/write-reference.ts [--check]   With --check nothing is written: the exit code is 1 if a page is old.
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { commandReference } from './command-reference.ts'
import { projectRoot } from './documents.ts'
import { fieldReference } from './field-reference.ts'
import { readMeasured } from './measured.ts'
import { sizeOf } from './sizing.ts'

const [begin, end] = ['<!-- numbers: written by make reference -->', '<!-- /numbers -->']

const pages: Readonly<Record<string, () => string>> = {
  'docs/reference/commands.md': commandReference,
  'docs/reference/fields.md': fieldReference,
  'docs/sizing.md': () => withNumbers(readFileSync(join(projectRoot, 'docs/sizing.md'), 'utf8')),
}

/** The page with the table between the two comments replaced. */
function withNumbers(page: string): string {
  const [from, to] = [page.indexOf(begin), page.indexOf(end)]
  if (from < 0 || to < from) throw new Error('docs/sizing.md has no comments around its numbers')
  return `${page.slice(0, from + begin.length)}\n${sizingTables()}\n${page.slice(to)}`
}

const sizes = [
  {
    title: 'a team',
    clusters: 10,
    activeClusters: 10,
    objectsPerCluster: 500,
    watches: 200,
    readsPerSecond: 20,
    writesPerSecond: 5,
  },
  {
    title: 'a company',
    clusters: 500,
    activeClusters: 100,
    objectsPerCluster: 1000,
    watches: 5000,
    readsPerSecond: 300,
    writesPerSecond: 50,
  },
  {
    title: 'a provider',
    clusters: 10_000,
    activeClusters: 500,
    objectsPerCluster: 1000,
    watches: 20_000,
    readsPerSecond: 2000,
    writesPerSecond: 300,
  },
] as const

function sizingTables(): string {
  const measured = readMeasured()
  return `| measured | |
|---|---|
| \`kcp start\` without logical clusters | ${measured.idleMiB} MiB |
| a logical cluster without objects of its tenant, shortly after its creation | ${measured.perClusterKiB} KiB |
| an object of 1 KiB of a logical cluster that is in memory | ${measured.perObjectKiB} KiB |
| an open watch | ${measured.perWatchKiB} KiB |
| a thousand GETs of one object | ${measured.cpuPerThousandReads} s of one core |
| a thousand creations | ${measured.cpuPerThousandWrites} s of one core |

${measured.source}.

| installation | logical clusters (in memory) | objects in each | watches | reads, writes per s | memory | cores | storage |
|---|---|---|---|---|---|---|---|
${sizes
  .map((wanted) => {
    const { title, clusters, activeClusters, objectsPerCluster, watches, readsPerSecond, writesPerSecond } = wanted
    const { memoryMiB, cores, storageMiB } = sizeOf(wanted, measured)
    return `| ${title} | ${clusters} (${activeClusters}) | ${objectsPerCluster} | ${watches} | ${readsPerSecond}, ${writesPerSecond} | ${memoryMiB} MiB | ${cores} | ${storageMiB} MiB |`
  })
  .join('\n')}`
}

const isCheck = process.argv.includes('--check')
const old = Object.entries(pages).filter(([path, make]) => {
  const file = join(projectRoot, path)
  const text = make()
  if (existsSync(file) && readFileSync(file, 'utf8') === text) return false
  if (!isCheck) writeFileSync(file, text)
  return true
})
if (isCheck && old.length > 0) {
  console.error(`not up to date: ${old.map(([path]) => path).join(', ')}`)
  process.exit(1)
}
