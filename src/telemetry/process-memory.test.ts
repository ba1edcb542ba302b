import { expect } from 'chai'
import { totalmem } from 'node:os'
import { getHeapStatistics } from 'node:v8'
import { containerMemory, youngGenerationLimit } from './process-memory.ts'

const MiB = 1024 * 1024

describe('youngGenerationLimit', () => {
  // heap_size_limit of Node 24 in cgroups of these sizes, without what is for old objects.
  for (const [memory, young] of [
    [256, 3],
    [512, 3],
    [700, 48],
    [1024, 48],
    [1500, 96],
    [2048, 96],
    [3000, 192],
    [24_576, 192],
  ] as const)
    it(`is ${young} MiB of ${memory} MiB`, () => expect(youngGenerationLimit(memory * MiB)).to.equal(young * MiB))

  it('and what V8 gives to old objects are the limit of the heap in this process', () => {
    const memory = Math.min(containerMemory(), totalmem())
    const old = getHeapStatistics().heap_size_limit - youngGenerationLimit(memory)
    expect(old % (2 * MiB), `${old} bytes for old objects`).to.equal(0)
  })
})
