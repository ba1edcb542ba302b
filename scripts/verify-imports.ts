// Prints what each folder of src/ imports, down to two levels, and fails where that is not what ARCHITECTURE.md allows, or
// where there is a cycle.   node scripts/verify-imports.ts
import { readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { checkImports, importsByFolder, parseImportTable } from './imports/check-imports.ts'
import { readImports } from './imports/read-imports.ts'

/** Top-level folders whose cycles are still to be broken. */
const unmended: readonly string[] = []

const root = resolve(import.meta.dirname, '..')
const imports = readImports(join(root, 'src'))
for (const [folder, targets] of importsByFolder(imports)) console.log(`${folder}: ${targets.join(', ') || '-'}`)
const table = parseImportTable(readFileSync(join(root, 'ARCHITECTURE.md'), 'utf8'))
const complaints = checkImports(imports, table, { unmended })
for (const line of complaints) console.error(line)
console.error(complaints.length === 0 ? 'imports: all go downward' : `imports: ${complaints.length} rules are broken`)
process.exitCode = complaints.length === 0 ? 0 : 1
