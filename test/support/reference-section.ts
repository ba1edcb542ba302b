// A generated part of a page in docs/reference, between two comments. Tests that count write it when
// KCP_UPDATE_REFERENCE is 1.
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { repositoryRoot } from './cache-dir.ts'

/**
 * The lines between `<!-- NAME -->` and `<!-- /NAME -->` in a page; `lines` are written there first if that is asked
 * for.
 */
export function referenceSection(page: string, name: string, lines: readonly string[]): readonly string[] {
  const file = join(repositoryRoot, 'docs', 'reference', page)
  const text = readFileSync(file, 'utf8')
  const [start, end] = [`<!-- ${name} -->\n`, `<!-- /${name} -->`]
  const [from, to] = [text.indexOf(start) + start.length, text.indexOf(end)]
  if (from < start.length || to < from) throw new Error(`${file} has no part "${name}"`)
  if (process.env['KCP_UPDATE_REFERENCE'] !== '1') return text.slice(from, to).split('\n').slice(0, -1)
  writeFileSync(file, text.slice(0, from) + lines.map((line) => `${line}\n`).join('') + text.slice(to))
  return lines
}
