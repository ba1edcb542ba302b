// The imports of a source tree, file by file: also of types, re-exports and import(...).
import { globSync, readFileSync } from 'node:fs'
import { dirname, join, relative, resolve } from 'node:path'
import ts from 'typescript'

export interface Import {
  /** Paths below the source tree. */
  readonly from: string
  readonly to: string
}

/**
 * Every import of our own files by the TypeScript files below `src`: by a relative path, or by name (`#FOLDER/FILE`).
 */
export function readImports(src: string): readonly Import[] {
  return globSync('**/*.ts', { cwd: src })
    .sort()
    .flatMap((from) =>
      ts
        .preProcessFile(readFileSync(join(src, from), 'utf8'), true, true)
        .importedFiles.filter(({ fileName }) => /^[.#]/.test(fileName))
        .map(({ fileName }) => ({ from, to: targetOf(src, from, fileName) })),
    )
}

function targetOf(src: string, from: string, specifier: string): string {
  if (specifier.startsWith('#')) return specifier.slice(1)
  return relative(src, resolve(src, dirname(from), specifier))
}
