// Measures a member in pull mode beside the same member in push mode: workloads into the member and back, through the
// tunnel of its agent and directly.
import type { Measurement, Numbers } from './measurement.ts'
import { rounded } from './statistics.ts'
import { withMember } from './sync.ts'

const single = 40

const [copied, back] = ['apply to the copy in the member p50 ms', 'pod Ready in the member to Ready upstream p50 ms']
const rate = 'Deployments/s into the member, from the first create'
const cpu = 'CPU ms of kcp per Deployment until it is Available'

export const pull: Measurement = {
  name: 'pull',
  describes: `a member on simulated nodes in push and in pull mode: ${single} Deployments one by one, then 1,000 at once`,
  async run(context) {
    const ways: Record<string, Numbers> = {}
    for (const way of ['push', 'pull'])
      ways[way] = await withMember({ ...context, name: `bench${way}`, pull: way === 'pull' }, async (bench) => {
        await bench.namespace('one')
        await bench.oneByOne(8)
        const one = await bench.oneByOne(single)
        return { ...one, ...(await bench.manyDeployments(context.say)) }
      })
    const ratio = (name: string): number => rounded((ways['pull']?.[name] ?? 0) / (ways['push']?.[name] ?? 1))
    return {
      ...Object.fromEntries(
        Object.entries(ways).flatMap(([way, numbers]) =>
          Object.entries(numbers).map(([name, value]) => [`${way}: ${name}`, value]),
        ),
      ),
      'pull to push, apply to the copy in the member': ratio(copied),
      'pull to push, pod Ready in the member to Ready upstream': ratio(back),
      'pull to push, Deployments/s': ratio(rate),
      'pull to push, CPU of kcp per Deployment': ratio(cpu),
    }
  },
}
