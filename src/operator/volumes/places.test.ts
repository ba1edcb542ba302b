import { expect } from 'chai'
import fc from 'fast-check'
import { mayHavePlace, Places, type Candidate } from './places.ts'

const limits = { total: 4, perMember: 3, perLogicalCluster: 2 }

/** A move `CLUSTER/NUMBER`; a lower number has waited longer. */
function candidate(name: string, { from = 'east', to = 'west' } = {}): Candidate {
  const [logicalCluster = '', number] = name.split('/')
  return { name, logicalCluster, from, to, sinceMs: Number(number) * 1000 }
}

function started(bounds = limits) {
  const placed: string[] = []
  const places = new Places(bounds, (move) => placed.push(move))
  const take = (...names: string[]) => names.map((name) => places.take(candidate(name)))
  return { places, placed, take }
}

describe('the places of volume moves', () => {
  it('say what is full, since when a move waits and how many are before it', () => {
    const { places, take } = started()
    expect(take('a/1', 'a/2')).to.deep.equal([undefined, undefined])
    const [third, fourth] = take('a/3', 'a/4')
    const why = '2 volumes are copied at a time for one logical cluster'
    expect(third).to.deep.equal({ ahead: 2, sinceMs: 3000, why })
    expect(fourth).to.deep.equal({ ahead: 3, sinceMs: 4000, why })
    expect(take('b/5')).to.deep.equal([undefined])
    expect(take('b/6')[0]?.why).to.equal('member cluster "east" takes part in 3 copies at a time')
    expect(places.take(candidate('b/7', { from: 'north', to: 'west' }))?.why).to.include('member cluster "west"')
    expect(places.take(candidate('b/8', { from: 'north', to: 'south' }))).to.equal(undefined)
    const [last] = [places.take(candidate('c/9', { from: 'north', to: 'south' }))]
    expect(last).to.deep.equal({ ahead: 4 + 4, sinceMs: 9000, why: '4 volumes are copied at a time' })
  })

  it('go to the logical cluster with the fewest, and in it to the longest wait', () => {
    const { places, placed, take } = started({ total: 3, perMember: 10, perLogicalCluster: 3 })
    take('a/1', 'a/2', 'a/3', 'a/4', 'a/5', 'b/9', 'b/8', 'c/7')
    places.giveBack('a/1', 'a')
    places.giveBack('a/2', 'a')
    expect(placed).to.deep.equal(['c/7', 'b/8'])
    places.giveBack('a/3', 'a')
    expect(placed.at(-1), 'a has none').to.equal('a/4')
  })

  it('go past a move whose member is full', () => {
    const { places, placed } = started({ total: 10, perMember: 1, perLogicalCluster: 10 })
    const pairs: [string, string, string][] = [
      ['a/1', 'east', 'west'],
      ['b/2', 'north', 'south'],
      ['a/3', 'east', 'north'],
      ['a/4', 'south', 'north'],
    ]
    for (const [name, from, to] of pairs) places.take(candidate(name, { from, to }))
    places.giveBack('b/2', 'b')
    expect(placed).to.deep.equal(['a/4'])
  })

  it('are kept when a move asks again, and given to it again after a restart', () => {
    const { places, placed, take } = started()
    places.resume(candidate('a/1'))
    places.resume(candidate('a/1'))
    expect(take('a/1', 'a/2')).to.deep.equal([undefined, undefined])
    expect(take('a/3', 'a/3').map((wait) => wait?.ahead)).to.deep.equal([2, 2])
    places.giveBack('a/3', 'a')
    places.giveBack('a/1', 'a')
    places.giveBack('a/1', 'a')
    expect(placed, 'the move that has ended').to.deep.equal([])
    expect(places.areWanted).to.equal(false)
  })

  it('are given back before the application stops', () => {
    const phases = ['Preparing', 'Copying', 'Ready', 'Finishing', 'Binding', 'Moved', 'Cancelled'] as const
    expect(phases.filter((phase) => !mayHavePlace(phase))).to.deep.equal(['Ready', 'Binding', 'Moved', 'Cancelled'])
  })

  it('never exceed a limit, and none is free for a move that waits', () => {
    const move = fc.record({
      logicalCluster: fc.constantFrom('a', 'b', 'c'),
      from: fc.constantFrom('east', 'west', 'north'),
      to: fc.constantFrom('south', 'up', 'down'),
    })
    const step = fc.oneof(fc.record({ take: move }), fc.record({ giveBack: fc.nat(30) }))
    const bounds = fc.record({ total: fc.integer({ min: 1, max: 5 }), each: fc.integer({ min: 1, max: 3 }) })
    fc.assert(
      fc.property(bounds, fc.array(step, { maxLength: 80 }), ({ total, each }, steps) => {
        const known: Candidate[] = []
        const places = new Places({ total, perMember: each, perLogicalCluster: each }, () => undefined)
        steps.forEach((one, index) => {
          if ('take' in one) {
            const asked = { ...one.take, name: `m${index}`, sinceMs: index }
            known.push(asked)
            places.take(asked)
          } else {
            const [gone] = known.splice(one.giveBack % Math.max(1, known.length), 1)
            if (gone !== undefined) places.giveBack(gone.name, gone.logicalCluster)
          }
          const holders = known.filter(({ name }) => places.has(name))
          const count = (test: (held: Candidate) => boolean): number => holders.filter(test).length
          const hasRoom = (asked: Candidate): boolean =>
            holders.length < total &&
            count((held) => held.logicalCluster === asked.logicalCluster) < each &&
            [asked.from, asked.to].every((member) => count(({ from, to }) => from === member || to === member) < each)
          expect(holders.length).to.be.at.most(total)
          for (const name of ['a', 'b', 'c']) expect(count((held) => held.logicalCluster === name)).to.be.at.most(each)
          for (const waiting of known.filter(({ name }) => !places.has(name)))
            expect(hasRoom(waiting), waiting.name).to.equal(false)
        })
      }),
    )
  })
})
