// Checks every import of src/ against the table in ARCHITECTURE.md: imports go downward only, a folder is entered through
// its index.ts.   node scripts/verify-imports.ts
import { readFileSync } from 'node:fs'
import { glob } from 'node:fs/promises'
import { dirname, join, relative, resolve } from 'node:path'

const root = resolve(import.meta.dirname, '..')
const src = join(root, 'src')

interface Rules {
  readonly folders: readonly string[]
  readonly allowed: ReadonlyMap<string, ReadonlySet<string>>
}

/** Reads the rows `| folder | may import |` between the two markers of ARCHITECTURE.md. */
function readRules(): Rules {
  const text = readFileSync(join(root, 'ARCHITECTURE.md'), 'utf8')
  const table = /<!-- imports -->([\s\S]*?)<!-- \/imports -->/.exec(text)?.[1]
  if (table === undefined)
    throw new Error('ARCHITECTURE.md has no import table between <!-- imports --> and <!-- /imports -->')
  const allowed = new Map<string, ReadonlySet<string>>()
  for (const line of table.split('\n')) {
    const [, folder = '', targets = ''] = line.split('|').map((cell) => cell.trim().replaceAll('`', ''))
    if (folder === '' || folder === 'folder' || folder.startsWith('-')) continue
    allowed.set(
      folder,
      new Set(
        targets
          .split(',')
          .map((target) => target.trim())
          .filter((target) => target !== '' && target !== '-'),
      ),
    )
  }
  return { folders: [...allowed.keys()], allowed }
}

/** The longest folder of the table that holds this file. */
function folderOf(path: string, folders: readonly string[]): string | undefined {
  return folders.filter((folder) => path.startsWith(`${folder}/`)).sort((a, b) => b.length - a.length)[0]
}

// Below these, subfolders are entered through their own index.
const manyDoors = ['apimachinery', 'store']

function complaint(file: string, target: string, { folders, allowed }: Rules): string | undefined {
  const [from, to] = [folderOf(file, folders), folderOf(target, folders)]
  if (from === undefined) return `${file}: its folder is not in the import table of ARCHITECTURE.md`
  if (to === undefined) return `${file}: imports ${target}, whose folder is not in the import table of ARCHITECTURE.md`
  if (from === to) return undefined
  const [topFrom, topTo] = [from.split('/')[0] ?? '', to.split('/')[0] ?? '']
  if (!(allowed.get(from)?.has(to) ?? false) && !(allowed.get(from)?.has(topTo) ?? false) && topFrom !== topTo)
    return `${file}: may not import ${to} (${target}); see the table in ARCHITECTURE.md`
  const isDoor = target.endsWith('/index.ts') || target.endsWith('.json')
  if (topFrom !== topTo && !isDoor)
    return `${file}: enters ${topTo} by ${target}; use ${manyDoors.includes(topTo) ? dirname(target) : topTo}/index.ts`
  return undefined
}

const rules = readRules()
const complaints: string[] = []
for await (const path of glob('**/*.ts', { cwd: src })) {
  const text = readFileSync(join(src, path), 'utf8')
  for (const [, specifier = ''] of text.matchAll(/^(?:import|export)\b[^'"]*?from\s+'(\.[^']+)'/gm)) {
    const target = relative(src, resolve(src, dirname(path), specifier))
    const found = complaint(path, target, rules)
    if (found !== undefined) complaints.push(found)
  }
}
for (const line of complaints) console.error(line)
console.error(complaints.length === 0 ? 'imports: all go downward' : `imports: ${complaints.length} climb`)
process.exitCode = complaints.length === 0 ? 0 : 1
