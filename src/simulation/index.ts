// Simulated members, for the commands that start them.
export { Network } from './runtime/network.ts'
export { usualTiming, type Timing } from './nodes/programs.ts'
export { demoClusters, demoMembers, demoObjects, helloManifest } from './demo/application.ts'
export { commandsOfGuide, guideText } from './demo/guide.ts'
export { Traffic, type TrafficReport } from './demo/traffic.ts'
export type { NodeOptions } from './nodes/nodes.ts'
export { startSimulatedMember, type SimulatedMember, type SimulatedMemberOptions } from './start-simulated-member.ts'
