// The lists of passing upstream tests, one per round, and the reasons why others do not pass: passing.txt,
// passing-with-workloads.txt, passing-with-nodes.txt and passing-in-members.txt (if present) and not-passing.md in a
// folder, this one by default.
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

/** A section of not-passing.md: the reason is its heading. */
interface Section {
  readonly reason: string
  readonly names: readonly string[]
}

/**
 * Whether the tests of a section are not run: they need what these logical clusters do not have, or skip themselves.
 */
export function isSkipped({ reason }: Pick<Section, 'reason'>): boolean {
  return reason.startsWith('Needs ') || reason.startsWith('Skipped ')
}

export interface Lists {
  readonly passing: readonly string[]
  /** Tests that pass when Kubernetes' own controllers and scheduler run, and kwok simulates nodes. */
  readonly withWorkloads: readonly string[]
  /** Tests that pass when these controllers run, and a node that runs pods. */
  readonly withNodes: readonly string[]
  /** Tests that pass when a member cluster runs the pods. */
  readonly inMembers: readonly string[]
  readonly notPassing: readonly Section[]
}

/** A round has a list of tests, and logical clusters of its own with what these tests need beside them. */
export type RoundName = 'alone' | 'workloads' | 'nodes' | 'members'

const fileOfRound: Readonly<Record<RoundName, string>> = {
  alone: 'passing.txt',
  workloads: 'passing-with-workloads.txt',
  nodes: 'passing-with-nodes.txt',
  members: 'passing-in-members.txt',
}

/** Reads all lists. Throws when a name is listed twice. */
export function readLists(folder = import.meta.dirname): Lists {
  return checked({
    passing: listOf(folder, 'alone'),
    withWorkloads: listOf(folder, 'workloads'),
    withNodes: listOf(folder, 'nodes'),
    inMembers: listOf(folder, 'members'),
    notPassing: parseNotPassing(readFileSync(join(folder, 'not-passing.md'), 'utf8')),
  })
}

/** Adds names to the list of a round, and removes them from not-passing.md. Changes nothing else. */
export function addPassing(
  names: readonly string[],
  { folder = import.meta.dirname, round = 'alone' }: { folder?: string; round?: RoundName } = {},
): void {
  const notPassing = join(folder, 'not-passing.md')
  const all = [...new Set([...listOf(folder, round), ...names])].sort()
  writeFileSync(join(folder, fileOfRound[round]), all.map((name) => `${name}\n`).join(''))
  writeFileSync(notPassing, withoutNames(readFileSync(notPassing, 'utf8'), new Set(names)))
}

function listOf(folder: string, round: RoundName): string[] {
  const file = join(folder, fileOfRound[round])
  return existsSync(file) ? parsePassing(readFileSync(file, 'utf8')) : []
}

/** One name per line, in order. */
export function parsePassing(text: string): string[] {
  return text.split('\n').filter((line) => line !== '')
}

/** Sections `## reason` with `- name` lines. */
export function parseNotPassing(text: string): Section[] {
  const sections: { reason: string; names: string[] }[] = []
  for (const line of text.split('\n')) {
    if (line.startsWith('## ')) sections.push({ reason: line.slice(3).trim(), names: [] })
    else if (isName(line)) sections.at(-1)?.names.push(line.slice(2).trim())
  }
  return sections
}

/** The document without these names; empty sections keep their explanation. */
export function withoutNames(text: string, names: ReadonlySet<string>): string {
  return text
    .split('\n')
    .filter((line) => !(isName(line) && names.has(line.slice(2).trim())))
    .join('\n')
}

/** Throws for a name that is listed twice. */
export function checked(lists: Lists): Lists {
  const { passing, withWorkloads, withNodes, inMembers, notPassing } = lists
  const seen = new Set<string>()
  const listed = [...passing, ...withWorkloads, ...withNodes, ...inMembers]
  for (const name of [...listed, ...notPassing.flatMap(({ names }) => names)]) {
    if (seen.has(name)) throw new Error(`"${name}" is listed twice in test/upstream`)
    seen.add(name)
  }
  return lists
}

const isName = (line: string): boolean => /^- (\[sig-|run_|between_)/.test(line)
