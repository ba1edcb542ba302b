// Which file of a source tree imports which: also types, re-exports and import(...).
import { globSync, readFileSync } from 'node:fs'
import { dirname, join, relative, resolve } from 'node:path'
import ts from 'typescript'

export interface Import {
  /** Paths below the source tree. */
  readonly from: string
  readonly to: string
}

/** Every relative import of the TypeScript files below `src`. */
export function readImports(src: string): readonly Import[] {
  return globSync('**/*.ts', { cwd: src })
    .sort()
    .flatMap((from) =>
      ts
        .preProcessFile(readFileSync(join(src, from), 'utf8'), true, true)
        .importedFiles.filter(({ fileName }) => fileName.startsWith('.'))
        .map(({ fileName }) => ({ from, to: relative(src, resolve(src, dirname(from), fileName)) })),
    )
}
