// The check of imports: only what the rules allow, no cycle, other top-level folders through their index.ts. Pure.
import { dirname } from 'node:path'
import { cyclesOf } from './cycles.ts'
import type { Import } from './read-imports.ts'

export interface ImportRules {
  /**
   * The other top-level folders that the files of a folder may import. A room with an entry of its own has only that.
   */
  readonly folders: Readonly<Record<string, readonly string[]>>
  /**
   * The rooms of a folder by floor, from the lowest up, several on a floor with spaces between; `.` stands for the
   * files of the folder itself. A file may import its own room and lower floors. A folder without an entry has no
   * order.
   */
  readonly floors: Readonly<Record<string, readonly string[]>>
}

const levels = 2
/** Their subfolders are entered through an index.ts of their own. */
const foldersOfDoors = new Set(['apimachinery', 'store'])

function ancestorOf(path: string, depth: number): string {
  return dirname(path).split('/').slice(0, depth).join('/')
}

const topOf = (path: string): string => path.split('/')[0] ?? ''

/** What each folder really imports, down to two levels, in order of names. */
export function importsByFolder(imports: readonly Import[]): ReadonlyMap<string, readonly string[]> {
  const folders = new Map<string, Set<string>>()
  for (const { from, to } of imports) {
    const [folder, target] = [ancestorOf(from, levels), ancestorOf(to, levels)]
    const targets = folders.get(folder) ?? new Set<string>()
    if (folder !== target) targets.add(target)
    folders.set(folder, targets)
  }
  return new Map([...folders].sort(byName).map(([folder, targets]) => [folder, [...targets].sort()]))
}

function byName([a]: readonly [string, unknown], [b]: readonly [string, unknown]): number {
  return a < b ? -1 : 1
}

/** Every rule that is broken, as a line for people. */
export function checkImports(imports: readonly Import[], rules: ImportRules): readonly string[] {
  return [
    ...imports.flatMap((each) => crossingComplaint(each, rules) ?? []),
    ...Object.keys(rules.floors).flatMap((folder) => floorComplaints(imports, folder, rules.floors[folder] ?? [])),
    ...findCycles(imports),
    ...staleRules(imports, rules),
  ]
}

function crossingComplaint({ from, to }: Import, { folders }: ImportRules): string | undefined {
  const [top, target] = [topOf(from), topOf(to)]
  if (top === target) return undefined
  const allowed = folders[ancestorOf(from, levels)] ?? folders[top]
  if (allowed === undefined) return `${from}: its folder ${top} is not in scripts/imports/rules.ts`
  if (!allowed.includes(target)) return `${from}: may not import ${target} (${to}); see scripts/imports/rules.ts`
  if (to.endsWith('/index.ts') || to.endsWith('.json')) return undefined
  return `${from}: enters ${target} by ${to}; use ${foldersOfDoors.has(target) ? dirname(to) : target}/index.ts`
}

function floorComplaints(imports: readonly Import[], folder: string, floors: readonly string[]): string[] {
  const floorOf = new Map(floors.flatMap((rooms, floor) => rooms.split(' ').map((room) => [room, floor])))
  const roomOf = (path: string): string =>
    dirname(path)
      .slice(folder.length + 1)
      .split('/')[0] || '.'
  const isInside = (path: string): boolean => path.startsWith(`${folder}/`)
  return imports.flatMap(({ from, to }) => {
    if (!isInside(from) || !isInside(to)) return []
    const [room, target] = [roomOf(from), roomOf(to)]
    if (room === target || to.endsWith('.json')) return []
    const [floor, targetFloor] = [floorOf.get(room), floorOf.get(target)]
    if (floor === undefined) return [`${from}: its room ${room} has no floor of ${folder} in scripts/imports/rules.ts`]
    if (targetFloor !== undefined && targetFloor < floor) return []
    return [`${from}: may not import ${to}: ${target} is not below ${room} in scripts/imports/rules.ts`]
  })
}

/** Between files, and between folders of every level: a folder counts with all that is in it, and by its own files. */
function findCycles(imports: readonly Import[]): readonly string[] {
  const depth = Math.max(0, ...imports.map(({ from }) => from.split('/').length - 1))
  const found = new Map<string, string>()
  const search = (what: string, nameOf: (path: string) => string): void => {
    for (const members of cyclesOf(imports.map(({ from, to }) => [nameOf(from), nameOf(to)]))) {
      const key = members.join(' ')
      if (found.has(key)) continue
      const examples = importsAmong(imports, members, nameOf)
      found.set(key, `cycle of ${what}: ${members.join(', ')}\n${examples}`)
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

/** Rules about folders and rooms that do not exist any more. */
function staleRules(imports: readonly Import[], { folders, floors }: ImportRules): string[] {
  const paths = imports.flatMap(({ from, to }) => [from, to])
  const isMissing = (folder: string): boolean => !paths.some((path) => path.startsWith(`${folder}/`))
  const rooms = Object.entries(floors).flatMap(([folder, rows]) =>
    rows.flatMap((row) => row.split(' ')).map((room) => (room === '.' ? folder : `${folder}/${room}`)),
  )
  return [...Object.keys(folders), ...rooms]
    .filter(isMissing)
    .map((folder) => `scripts/imports/rules.ts names ${folder}, which does not exist`)
}
