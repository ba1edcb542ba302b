// Values that hold one another many times over: small in memory, endless where they are printed, compared, searched or
// converted.
import { expect } from 'chai'
import {
  compileExpression,
  dynType,
  extendEnvironment,
  JsonRoom,
  kubernetesEnvironment,
  mutationFunctions,
  mutationJson,
  mutationStructs,
  type ObjectValue,
  Program,
} from './index.ts'

const nested = (times: number, first = '1'): string => `[[${first}]]${'.map(x, [x, x])'.repeat(times)}`
const joined = (times: number, first = '[1, 2]'): string => `[${first}]${'.map(x, x + x)'.repeat(times)}`
const keyed = (times: number): string => `[{"a": 1}]${'.map(x, {"a": x, "b": x})'.repeat(times)}`
const tooMuch = 'operation cancelled: actual cost limit exceeded'
/** Some 20 ns each: a run that takes them all takes 0.1 s. */
const maxSteps = 5_000_000

describe('values that hold one another many times over', () => {
  const s = 'x'.repeat(100_000)
  const extension = { functions: mutationFunctions, structs: mutationStructs }
  const environment = extendEnvironment(kubernetesEnvironment(), {
    ...extension,
    variables: { s: dynType },
    homogeneousLiterals: false,
  })
  const run = (text: string): { error?: string; steps: number } => {
    const program = compileExpression(text, environment)
    if (!(program instanceof Program)) throw new Error(program.message)
    let steps = 0
    const outcome = program.run(new Map([['s', s]]), { spent: (_cost, taken) => (steps += taken) })
    return { ...(outcome.error !== undefined && { error: outcome.error }), steps }
  }

  for (const [what, text] of Object.entries({
    'printed: lists': `"%s".format([${nested(40)}])`,
    'printed: texts': `"%s".format([${nested(40, 's')}])`,
    'printed: maps': `"%s".format([${keyed(40)}])`,
    'printed: lists that were joined': `"%s".format([${joined(40)}])`,
    'printed: again and again': `lists.range(1000).all(i, "%s".format([${nested(14)}]) != "")`,
    'printed in an error': `[dyn(${nested(40)})].join("")`,
    'compared: lists': `${nested(40)} == ${nested(40)}`,
    'compared: maps': `${keyed(40)} == ${keyed(40)}`,
    'compared: long texts': `${nested(20, 's + "a"')} == ${nested(20, 's + "a"')}`,
    'compared: lists that were joined': `${joined(30)} == ${joined(30)}`,
    'searched: lists': `${nested(40)} in [${nested(40)}]`,
    'searched: the index': `[${nested(40)}].indexOf(${nested(40)})`,
    'joined: texts': `lists.range(1000).map(i, s + string(i)).size()`,
    'counted: texts': `lists.range(100000).all(i, (s + string(i)).size() > 0)`,
    'used as a key': `lists.range(100000).all(i, !((s + string(i)) in {"a": 1}))`,
    'split: texts': `lists.range(1000).map(i, s.split("x"))`,
    'flattened: lists': `[${joined(40)}].map(x, x.flatten())`,
  }))
    it(`end a run soon where they are ${what}`, () => {
      const { error, steps } = run(text)
      expect(error).to.equal(tooMuch)
      expect(steps).to.be.at.most(maxSteps)
    })

  for (const [what, text] of Object.entries({
    'a list of 100,000 numbers': '"%s".format([lists.range(100000)]).size() > 0',
    'a text of 100,000 characters': '"%s".format([[s]]).size() > 0 && s == s + "" && s.size() == 100000',
    'lists of 300,000 numbers': 'lists.range(300000) == lists.range(300000)',
    'a size in a loop': 'lists.range(10000).all(i, s.size() > i)',
    'a search in a loop': '[lists.range(1000)].all(l, lists.range(500).all(i, i in l))',
  }))
    it(`do not end a run with ${what}`, () => expect(run(text).error).to.equal(undefined))

  it('count at each place where they are, as JSON and as types of a mutation', () => {
    const make = (text: string): ObjectValue => {
      const program = compileExpression(text, environment)
      const { value } = (program as Program).run(new Map())
      return value as ObjectValue
    }
    const large = make(`Object{spec: Object.spec{list: ${nested(40)}}}`)
    expect(() => mutationJson(large, new JsonRoom(1_000_000))).to.throw('the values of mutations are too large')
    expect(() => large.typeErrors(new JsonRoom(1_000_000))).to.throw('the values of mutations are too large')
    const small = make(`Object{spec: Object.spec{list: ${nested(10)}}}`)
    expect(JSON.stringify(mutationJson(small, new JsonRoom(100_000)))).to.have.length.above(1 << 10)
    const wrong = make(`Object{spec: Object.spec{list: [Object.wrong{}]${'.map(x, [x, x])'.repeat(10)}}}`)
    expect(wrong.typeErrors(new JsonRoom(100_000))).to.have.length(100)
  })
})
