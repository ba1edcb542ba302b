// The documents of the project: the README, the changelog and all of docs.
import { globSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'

/** The folder of the project. */
export const projectRoot = resolve(import.meta.dirname, '../..')

/** Paths of all documents, relative to the project. */
export function documentPaths(): string[] {
  return ['README.md', 'CHANGELOG.md', ...globSync('docs/**/*.md', { cwd: projectRoot }).sort()]
}

/** The text of a document. */
export function readDocument(path: string): string {
  return readFileSync(join(projectRoot, path), 'utf8')
}
