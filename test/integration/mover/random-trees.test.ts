// Property: after any changes of a volume with entries of all kinds, a round makes the target equal to it.
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import { differences } from './compare-trees.ts'
import { startMoverPair } from './mover-pair.ts'
import { Dice, RandomTree } from './random-tree.ts'

const seeds = process.env['KCP_TEST_SEEDS']?.split(',').map(Number) ?? [1, 2, 3]
const count = Number(process.env['KCP_TEST_ROUNDS'] ?? 3)

describe('random trees copied by movers', () => {
  for (const seed of seeds)
    it(`are equal after each of ${count} rounds with changes between them (seed ${seed})`, async () => {
      const root = mkdtempSync(join(tmpdir(), 'kcp-mover-'))
      const [source, target] = [join(root, 'source'), join(root, 'target')]
      for (const folder of [source, target]) mkdirSync(folder)
      try {
        const dice = new Dice(seed)
        const tree = new RandomTree(source, dice)
        // The target begins with something else.
        new RandomTree(target, new Dice(seed + 1000)).change(60)
        await using pair = await startMoverPair({ source, target })
        for (let round = 0; round < count; round++) {
          tree.change(round === 0 ? 150 : 40)
          // Final rounds come first as well: they copy while they compare.
          const mode = (round + seed) % 2 === 1 ? 'copy' : 'final'
          const result = await pair.round({ mode, allowEmpty: true })
          expect(differences(source, target), `round ${round}`).to.deep.equal([])
          expect(result.notKept.count).to.equal(0)
          if (mode === 'final') expect(result.verified).to.equal(true)
        }
      } finally {
        rmSync(root, { recursive: true, force: true })
      }
    })
})
