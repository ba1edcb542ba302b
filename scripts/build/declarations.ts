// Names the imports of the declarations in dist/src as a package that uses them finds them: relative, with the
// extension of the compiled file. TypeScript leaves `#FOLDER/FILE.ts` as the source has it.   node
// scripts/build/declarations.ts
import { globSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join, relative, resolve } from 'node:path'

const output = resolve(import.meta.dirname, '../../dist/src')
const imports = /(\bfrom |\bimport\()(["'])([.#][^"']*)\.ts\2/g

for (const file of globSync('**/*.d.ts', { cwd: output })) {
  const path = join(output, file)
  const text = readFileSync(path, 'utf8')
  const named = text.replace(imports, (_, before: string, quote: string, target: string) => {
    return `${before}${quote}${relativeTo(dirname(file), target)}.js${quote}`
  })
  if (named !== text) writeFileSync(path, named)
}

function relativeTo(folder: string, target: string): string {
  if (target.startsWith('.')) return target
  const path = relative(folder, target.slice(1))
  return path.startsWith('.') ? path : `./${path}`
}
