// Prints what each folder of src/ imports, down to two levels, and fails where the rules do not allow an import, or
// where there is a cycle.   node scripts/verify-imports.ts
import { join, resolve } from 'node:path'
import { checkImports, importsByFolder } from './imports/check-imports.ts'
import { readImports } from './imports/read-imports.ts'
import { rules } from './imports/rules.ts'

const imports = readImports(join(resolve(import.meta.dirname, '..'), 'src'))
for (const [folder, targets] of importsByFolder(imports)) console.log(`${folder}: ${targets.join(', ') || '-'}`)
const complaints = checkImports(imports, rules)
for (const line of complaints) console.error(line)
console.error(complaints.length === 0 ? 'imports: all go downward' : `imports: ${complaints.length} rules are broken`)
process.exitCode = complaints.length === 0 ? 0 : 1
