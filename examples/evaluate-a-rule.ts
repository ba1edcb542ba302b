// Compiles a rule as kube-apiserver would, estimates what it may cost, and runs it on two objects:
//   node examples/evaluate-a-rule.ts
import {
  compileExpression,
  declaredType,
  extendEnvironment,
  kubernetesEnvironment,
  parseStructuralSchema,
  printValue,
  typedValue,
} from 'kcp/cel'

const schema = parseStructuralSchema({
  type: 'object',
  properties: {
    replicas: { type: 'integer' },
    hosts: { type: 'array', maxItems: 10, items: { type: 'string', maxLength: 63 } },
  },
})
const self = declaredType(schema, 'Spec')
if (self === undefined) throw new Error('the schema has no type in CEL')
const environment = extendEnvironment(kubernetesEnvironment({ minor: 34 }), {
  variables: { self: self.type },
  declaredTypes: [self],
})

const rule = 'self.replicas <= size(self.hosts) && self.hosts.all(host, host.endsWith(".example"))'
const program = compileExpression(rule, environment)
if ('stage' in program) throw new Error(program.message)
console.log(`may cost ${program.estimate(self).max}`)
for (const spec of [
  { replicas: 1, hosts: ['a.example'] },
  { replicas: 2, hosts: ['a.example'] },
]) {
  const { value, error, cost } = program.run(new Map([['self', typedValue(spec, schema)]]))
  console.log(`${JSON.stringify(spec)}: ${value === undefined ? error : printValue(value)}, cost ${cost}`)
}
