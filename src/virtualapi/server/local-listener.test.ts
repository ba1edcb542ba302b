import { expect } from 'chai'
import { chmodSync, mkdirSync, mkdtempSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { requireOwnDirectory } from './local-listener.ts'

describe('the directory of the sockets between workers', () => {
  const dir = mkdtempSync(join(tmpdir(), 'kcp-own-'))
  const own = join(dir, 'own')
  mkdirSync(own, { mode: 0o700 })
  after(() => rmSync(dir, { recursive: true, force: true }))

  const refusal = async (path: string): Promise<string> =>
    requireOwnDirectory(path).then(
      () => 'none',
      (error: unknown) => String(error),
    )

  it('is one that only our user can enter', async () => {
    expect(await refusal(own)).to.equal('none')
  })

  for (const mode of [0o710, 0o701, 0o755, 0o777])
    it(`is refused with mode ${mode.toString(8)}`, async () => {
      chmodSync(own, mode)
      expect(await refusal(own)).to.contain('can be entered by others')
      chmodSync(own, 0o700)
    })

  it('is refused as a link, which somebody could lead elsewhere', async () => {
    const link = join(dir, 'link')
    symlinkSync(own, link)
    expect(await refusal(link)).to.contain('can be entered by others')
  })
})
