import { expect } from 'chai'
import { objectCharge, StorageBudget } from './quota-account.ts'
import { isStoreError } from './store.ts'

const limit = 16_000
const kept = { size: 10, bytes: 5000 }
const used = kept.bytes + kept.size * objectCharge
const over = (error: unknown): boolean => isStoreError(error, 'OverBudget')
const write = (): Promise<string> => Promise.resolve('written')

describe('the storage budget of a logical cluster', () => {
  it('admits a creation that fits to the byte, and refuses one that is a byte larger', async () => {
    const room = limit - used - objectCharge
    const budget = new StorageBudget(limit)
    expect(await budget.admit(kept, { bytes: room, creates: true }, write)).to.equal('written')
    const error = await budget.admit(kept, { bytes: room + 1, creates: true }, write).catch((reason: unknown) => reason)
    expect(error).to.satisfy(over)
    expect((error as Error).message).to.contain(`used: bytes=${used}, limited: bytes=${limit}`)
  })

  it('counts writes while they are under way, and no longer', async () => {
    const budget = new StorageBudget(limit)
    const first = Promise.withResolvers<string>()
    const bytes = limit - used - objectCharge
    const pending = budget.admit(kept, { bytes, creates: true }, () => first.promise)
    expect(await budget.admit(kept, { bytes: 1, creates: true }, write).catch(over)).to.equal(true)
    first.reject(new Error('the store refused'))
    await pending.catch(() => undefined)
    expect(await budget.admit(kept, { bytes, creates: true }, write)).to.equal('written')
  })

  it('admits updates a bounded amount beyond the limit, and always admits shrinking', async () => {
    const budget = new StorageBudget(used)
    expect(await budget.admit(kept, { bytes: 1, creates: true }, write).catch(over)).to.equal(true)
    expect(await budget.admit(kept, { bytes: used / 16, creates: false }, write)).to.equal('written')
    expect(await budget.admit(kept, { bytes: used / 16 + 1, creates: false }, write).catch(over)).to.equal(true)
    const full = new StorageBudget(1)
    expect(await full.admit(kept, { bytes: -5, creates: false }, write)).to.equal('written')
    expect(await full.admit(kept, { bytes: 0, creates: false }, write)).to.equal('written')
  })
})
