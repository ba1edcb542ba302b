// The rules of imports: only what the table allows, no cycle, other top-level folders through their index.ts. Pure.
import { dirname } from 'node:path'
import { cyclesOf } from './cycles.ts'
import type { Import } from './read-imports.ts'

/** What the files of a folder may import; `NAME/*` stands for every folder in NAME. */
export type ImportTable = ReadonlyMap<string, ReadonlySet<string>>

const levels = 2
/** Their subfolders are entered through an index.ts of their own. */
const foldersOfDoors = new Set(['apimachinery', 'store'])

/** Reads the rows `| folder | may import |` between the two markers of ARCHITECTURE.md. */
export function parseImportTable(markdown: string): ImportTable {
  const rows = /<!-- imports -->([\s\S]*?)<!-- \/imports -->/.exec(markdown)?.[1]
  if (rows === undefined) throw new Error('no import table between <!-- imports --> and <!-- /imports -->')
  const table = new Map<string, ReadonlySet<string>>()
  for (const line of rows.split('\n')) {
    const [, folder = '', targets = ''] = line.split('|').map((cell) => cell.trim().replaceAll('`', ''))
    if (folder === '' || folder === 'folder' || folder.startsWith('-')) continue
    const names = targets.split(',').map((target) => target.trim())
    table.set(folder, new Set(names.filter((name) => name !== '' && name !== '-')))
  }
  return table
}

/** The folder of a path, down to two levels. */
function folderOf(path: string): string {
  return ancestorOf(path, levels)
}

function ancestorOf(path: string, depth: number): string {
  return dirname(path).split('/').slice(0, depth).join('/')
}

const topOf = (path: string): string => path.split('/')[0] ?? ''

/** What each folder really imports, down to two levels, in order of names. */
export function importsByFolder(imports: readonly Import[]): ReadonlyMap<string, readonly string[]> {
  const folders = new Map<string, Set<string>>()
  for (const { from, to } of imports) {
    const [folder, target] = [folderOf(from), folderOf(to)]
    const targets = folders.get(folder) ?? new Set<string>()
    if (folder !== target) targets.add(target)
    folders.set(folder, targets)
  }
  return new Map([...folders].sort(byName).map(([folder, targets]) => [folder, [...targets].sort()]))
}

function byName([a]: readonly [string, unknown], [b]: readonly [string, unknown]): number {
  return a < b ? -1 : 1
}

/**
 * Every rule that is broken, as a line for people. `unmended`: top-level folders whose cycles are still to be broken; one
 * that has none any more is a complaint too, so that the list shrinks.
 */
export function checkImports(
  imports: readonly Import[],
  table: ImportTable,
  { unmended = [] }: { readonly unmended?: readonly string[] } = {},
): readonly string[] {
  const cycles = findCycles(imports)
  const isUnmended = ({ members }: Cycle, folder: string): boolean =>
    members.every((member) => topOf(member) === folder)
  return [
    ...imports.flatMap((one) => importComplaint(one, table) ?? []),
    ...cycles.filter((cycle) => !unmended.some((folder) => isUnmended(cycle, folder))).map(({ text }) => text),
    ...unmended
      .filter((folder) => !cycles.some((cycle) => isUnmended(cycle, folder)))
      .map((folder) => `${folder} has no cycle any more: take it off the list in scripts/verify-imports.ts`),
    ...staleRows(imports, table),
  ]
}

function importComplaint({ from, to }: Import, table: ImportTable): string | undefined {
  const [folder, target] = [folderOf(from), folderOf(to)]
  if (folder === target) return undefined
  const allowed = table.get(folder)
  if (allowed === undefined) return `${from}: its folder ${folder} is not in the import table of ARCHITECTURE.md`
  if (!allowed.has(target) && !allowed.has(`${dirname(target)}/*`))
    return `${from}: may not import ${target} (${to}); see the table in ARCHITECTURE.md`
  const [top, targetTop] = [topOf(from), topOf(to)]
  if (top === targetTop || to.endsWith('/index.ts') || to.endsWith('.json')) return undefined
  return `${from}: enters ${targetTop} by ${to}; use ${foldersOfDoors.has(targetTop) ? dirname(to) : targetTop}/index.ts`
}

interface Cycle {
  readonly members: readonly string[]
  readonly text: string
}

/** Between files, and between folders of every level: a folder counts with all that is in it, and by its own files. */
function findCycles(imports: readonly Import[]): readonly Cycle[] {
  const depth = Math.max(0, ...imports.map(({ from }) => from.split('/').length - 1))
  const found = new Map<string, Cycle>()
  const search = (what: string, nameOf: (path: string) => string): void => {
    for (const members of cyclesOf(imports.map(({ from, to }) => [nameOf(from), nameOf(to)]))) {
      const key = members.join(' ')
      if (found.has(key)) continue
      const examples = importsAmong(imports, members, nameOf)
      found.set(key, { members, text: `cycle of ${what}: ${members.join(', ')}\n${examples}` })
    }
  }
  search('files', (path) => path)
  for (let level = 1; level <= depth; level++) search('folders', (path) => ancestorOf(path, level))
  return [...found.values()]
}

/** One import for each direction that is taken within the cycle. */
function importsAmong(
  imports: readonly Import[],
  members: readonly string[],
  nameOf: (path: string) => string,
): string {
  const examples = new Map<string, string>()
  for (const { from, to } of imports) {
    const [a, b] = [nameOf(from), nameOf(to)]
    if (a === b || !members.includes(a) || !members.includes(b)) continue
    if (!examples.has(`${a} ${b}`)) examples.set(`${a} ${b}`, `  ${from} imports ${to}`)
  }
  return [...examples.values()].join('\n')
}

/** Rows of folders that there are not any more. */
function staleRows(imports: readonly Import[], table: ImportTable): string[] {
  const folders = new Set(imports.flatMap(({ from, to }) => [folderOf(from), folderOf(to)]))
  return [...table.keys()]
    .filter((folder) => !folders.has(folder))
    .map((folder) => `the import table of ARCHITECTURE.md names ${folder}, which there is not`)
}
