import { expect } from 'chai'
import fc from 'fast-check'
import { addAmounts, amountsOf, type Quantity } from '#apimachinery/quantity/index.ts'
import { fullnessOf, rebalanceMoves, type RebalanceMember, type RebalanceUnit } from './rebalance-moves.ts'

interface Fleet {
  readonly limits: readonly { readonly cpu: number; readonly memory: number }[]
  readonly units: readonly { readonly cpu: number; readonly memory: number; readonly member: number }[]
}

const fleets: fc.Arbitrary<Fleet> = fc.integer({ min: 2, max: 5 }).chain((count) =>
  fc.record({
    limits: fc.array(fc.record({ cpu: fc.integer({ min: 4, max: 40 }), memory: fc.integer({ min: 4, max: 40 }) }), {
      minLength: count,
      maxLength: count,
    }),
    units: fc.array(fc.record({ cpu: fc.nat(6), memory: fc.nat(6), member: fc.nat(count - 1) }), { maxLength: 30 }),
  }),
)

const name = (i: number): string => `m${i}`
const list = ({ cpu, memory }: { readonly cpu: number; readonly memory: number }) =>
  amountsOf({ cpu: String(cpu), memory: String(memory) })

const unitsOf = ({ units }: Fleet): RebalanceUnit[] =>
  units.map((unit, i) => ({ key: `w${i}`, member: name(unit.member), requests: list(unit) }))

function membersWith({ limits }: Fleet, units: readonly RebalanceUnit[]): RebalanceMember[] {
  return limits.map((limit, i) => {
    const requested = new Map<string, Quantity>()
    for (const unit of units) if (unit.member === name(i)) addAmounts(requested, unit.requests)
    return { name: name(i), limits: list(limit), requested }
  })
}

/** How full the members are, the fullest first. */
const shape = (members: readonly RebalanceMember[]): number[] =>
  members.map(({ limits, requested }) => fullnessOf(limits, requested)).sort((a, b) => b - a)

const isLess = (a: readonly number[], b: readonly number[]): boolean => {
  const i = a.findIndex((one, at) => one !== b[at])
  return i >= 0 && a[i]! < b[i]!
}

/** One look at the fleet; at most `most` moves. */
function balance(fleet: Fleet, units: readonly RebalanceUnit[], gain: number, most = Infinity): RebalanceUnit[] {
  const now = [...units]
  let left = most
  const moves = rebalanceMoves(membersWith(fleet, now), now, gain)
  for (let next = moves.next('stays'); next.done !== true && left > 0; next = moves.next('move')) {
    const { unit, to } = next.value
    now[now.findIndex(({ key }) => key === unit.key)] = { ...unit, member: to }
    left--
  }
  return now
}

describe('moves from fuller to emptier members', () => {
  it('end, whatever the fleet: each makes the fuller of two members less full, and no state comes again', () => {
    let moves = 0
    let longest = 0
    fc.assert(
      fc.property(fleets, fc.integer({ min: 5, max: 60 }), fc.integer({ min: 1, max: 3 }), (fleet, gain, most) => {
        let units = unitsOf(fleet)
        let made = 0
        for (let look = 0; ; look++) {
          if (look > 300) throw new Error('it does not end')
          const next = balance(fleet, units, gain, most)
          const changed = next.filter(({ member }, i) => member !== units[i]!.member).length
          if (changed === 0) break
          expect(changed).to.be.at.most(most)
          expect(isLess(shape(membersWith(fleet, next)), shape(membersWith(fleet, units)))).to.equal(true)
          made += changed
          units = next
        }
        moves += made
        longest = Math.max(longest, made / Math.max(1, units.length))
      }),
      { numRuns: 1000 },
    )
    console.log(`      ${moves} moves in 1000 fleets, at most ${longest.toFixed(2)} of a workload`)
    expect(moves).to.be.greaterThan(1000)
    expect(longest).to.be.at.most(5)
  })

  it('leave no workload where a single move would gain enough', () => {
    fc.assert(
      fc.property(fleets, fc.integer({ min: 5, max: 60 }), (fleet, gain) => {
        let units = unitsOf(fleet)
        for (let next = balance(fleet, units, gain); next.some((unit, i) => unit.member !== units[i]!.member);) {
          units = next
          next = balance(fleet, units, gain)
        }
        const members = membersWith(fleet, units)
        for (const unit of units)
          for (const target of members) {
            const source = members.find(({ name }) => name === unit.member)!
            if (target === source) continue
            const before = fullnessOf(source.limits, source.requested)
            const [left, taken] = [new Map(source.requested), new Map(target.requested)]
            addAmounts(left, unit.requests, -1)
            addAmounts(taken, unit.requests)
            const after = fullnessOf(target.limits, taken)
            const isGain = before - after >= gain && after <= 100 && fullnessOf(source.limits, left) < before
            expect(isGain, `${unit.key} from ${source.name} to ${target.name}`).to.equal(false)
          }
      }),
      { numRuns: 500 },
    )
  })

  const half = { cpu: 5, memory: 0 }
  const fleet = (...members: number[]): Fleet => ({
    limits: [0, 1].map(() => ({ cpu: 10, memory: 10 })),
    units: members.map((member) => ({ ...half, member })),
  })
  for (const { title, given, gain, moved } of [
    { title: 'take one of two to an empty member', given: fleet(0, 0), gain: 20, moved: 1 },
    { title: 'take none where the other would be as full', given: fleet(0), gain: 5, moved: 0 },
    { title: 'take none below the threshold', given: fleet(0, 0), gain: 51, moved: 0 },
    {
      title: 'take none that requests nothing of what the member is short of',
      given: {
        ...fleet(0, 0),
        units: [...fleet(0, 0).units.map((one) => ({ ...one, member: 0 })), { cpu: 0, memory: 1, member: 0 }],
      },
      gain: 60,
      moved: 0,
    },
  ])
    it(title, () => {
      const units = unitsOf(given)
      const after = balance(given, units, gain)
      expect(after.filter(({ member }, i) => member !== units[i]!.member)).to.have.length(moved)
    })

  it('are proposed for another member where one is refused, and for no other where the workload stays', () => {
    const wide: Fleet = { limits: [0, 1, 2].map(() => ({ cpu: 10, memory: 10 })), units: fleet(0, 0).units }
    const asked = (answer: 'otherMember' | 'stays'): string[] => {
      const units = unitsOf(wide)
      const moves = rebalanceMoves(membersWith(wide, units), units, 20)
      const found: string[] = []
      for (let next = moves.next('stays'); next.done !== true; next = moves.next(answer))
        found.push(`${next.value.unit.key} ${next.value.to}`)
      return found
    }
    expect(asked('otherMember')).to.deep.equal(['w0 m1', 'w0 m2', 'w1 m1', 'w1 m2'])
    expect(asked('stays')).to.deep.equal(['w0 m1', 'w1 m1'])
  })
})
