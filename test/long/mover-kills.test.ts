// Movers as processes, ended by SIGKILL at random moments: the next round converges. Needs a build.
import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { expect } from 'chai'
import { issueMoverCredentials } from '#mover/index.ts'
import { differences } from '#test/integration/mover/compare-trees.ts'
import { MoverProcess } from '#test/integration/mover/mover-process.ts'
import { Dice, RandomTree } from '#test/integration/mover/random-tree.ts'

const seeds = process.env['KCP_TEST_SEEDS']?.split(',').map(Number) ?? [1, 2, 3, 4, 5]
const kills = Number(process.env['KCP_TEST_ROUNDS'] ?? 12)
describe('movers that are killed at any moment', () => {
  for (const seed of seeds)
    it(`converge (seed ${seed})`, async function () {
      this.timeout(600_000)
      const root = mkdtempSync(join(tmpdir(), 'kcp-mover-'))
      for (const folder of ['source', 'target']) mkdirSync(join(root, folder))
      const credentials = await issueMoverCredentials('move-1')
      const movers = [
        new MoverProcess(root, 'source', credentials),
        new MoverProcess(root, 'target', credentials),
      ] as const
      const [source, target] = movers
      const dice = new Dice(seed)
      const tree = new RandomTree(join(root, 'source'), dice, { hasTrusted: false })
      try {
        for (const mover of movers) await mover.start()
        tree.change(300)
        execFileSync('dd', ['if=/dev/urandom', `of=${join(root, 'source/large')}`, 'bs=1M', 'count=60', 'status=none'])
        const round = (mode: 'copy' | 'final') =>
          target.control.round(
            { mode, source: { address: `127.0.0.1:${source.port}` }, allowEmpty: true },
            () => undefined,
            AbortSignal.timeout(120_000),
          )
        for (let i = 0; i < kills; i++) {
          const running = round(i % 3 === 2 ? 'final' : 'copy').catch(() => undefined)
          await delay(dice.below(400))
          const victim = dice.pick(movers)
          await victim.kill()
          await running
          await victim.start()
          tree.change(20)
        }
        const result = await round('final')
        expect(result.verified).to.equal(true)
        expect(differences(join(root, 'source'), join(root, 'target'))).to.deep.equal([])
      } finally {
        for (const mover of movers) await mover.kill()
        rmSync(root, { recursive: true, force: true })
      }
    })
})
