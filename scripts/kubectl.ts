// Prints the path of the pinned kubectl, after building it from its Go module if needed.   node scripts/kubectl.ts
import { ensurePrograms } from '#test/support/index.ts'

if (process.argv.includes('--help'))
  console.log('usage: node scripts/kubectl.ts\nPrints the path of kubectl, built when missing.')
else {
  const { kubectl } = await ensurePrograms(['kubectl'], { log: (line) => console.error(line) })
  console.log(kubectl)
}
