// The lists of passing upstream tests, and the reasons why others do not pass: passing.txt, passing-with-workloads.txt
// (if present) and not-passing.md in a folder, this one by default.
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

/** A section of not-passing.md: the reason is its heading. */
interface Section {
  readonly reason: string
  readonly names: readonly string[]
}

export interface Lists {
  readonly passing: readonly string[]
  /** Tests that pass when Kubernetes' own controllers and scheduler run, and kwok simulates nodes. */
  readonly withWorkloads: readonly string[]
  readonly notPassing: readonly Section[]
}

/** Reads all lists. Throws when a name is listed twice. */
export function readLists(folder = import.meta.dirname): Lists {
  const { passingFile, workloadsFile, notPassingFile } = filesIn(folder)
  return checked(
    parsePassing(readFileSync(passingFile, 'utf8')),
    existsSync(workloadsFile) ? parsePassing(readFileSync(workloadsFile, 'utf8')) : [],
    parseNotPassing(readFileSync(notPassingFile, 'utf8')),
  )
}

/**
 * Adds names to passing.txt, or to the list with workloads, and removes them from not-passing.md. Changes nothing else.
 */
export function addPassing(
  names: readonly string[],
  { folder = import.meta.dirname, workloads = false }: { folder?: string; workloads?: boolean } = {},
): void {
  const { passingFile, workloadsFile, notPassingFile } = filesIn(folder)
  const file = workloads ? workloadsFile : passingFile
  const passing = existsSync(file) ? parsePassing(readFileSync(file, 'utf8')) : []
  writeFileSync(file, `${[...new Set([...passing, ...names])].sort().join('\n')}\n`)
  writeFileSync(notPassingFile, withoutNames(readFileSync(notPassingFile, 'utf8'), new Set(names)))
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
export function checked(
  passing: readonly string[],
  withWorkloads: readonly string[],
  notPassing: readonly Section[],
): Lists {
  const seen = new Set<string>()
  for (const name of [...passing, ...withWorkloads, ...notPassing.flatMap(({ names }) => names)]) {
    if (seen.has(name)) throw new Error(`"${name}" is listed twice in test/upstream`)
    seen.add(name)
  }
  return { passing, withWorkloads, notPassing }
}

const filesIn = (folder: string): { passingFile: string; workloadsFile: string; notPassingFile: string } => ({
  passingFile: join(folder, 'passing.txt'),
  workloadsFile: join(folder, 'passing-with-workloads.txt'),
  notPassingFile: join(folder, 'not-passing.md'),
})

const isName = (line: string): boolean => /^- (\[sig-|run_|between_)/.test(line)
