// Those of test/long/hostile-definitions that take seconds.
import { describeStories } from '#test/long/hostile-definitions/describe-stories.ts'

describeStories(/^(regular expressions|CEL|schemas)/)
