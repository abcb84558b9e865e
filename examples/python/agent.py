"""A small agent: proposes one plan with its run token and waits for what becomes of it.

Run it inside a run of its own, on generated stubs (see README.md):

    exequatur run --scope sms.send -- python examples/python/agent.py "+15550100" "Shift moved to 09:00"

It holds no key of any provider. What it gets from its surroundings is a token for one run.
"""

import json
import os
import sys
import uuid

import grpc

from exequatur.plan.v1 import plan_pb2, plan_pb2_grpc

# States in which nothing more happens by itself.
ENDED = {
    plan_pb2.ACTION_STATE_DENIED,
    plan_pb2.ACTION_STATE_REJECTED,
    plan_pb2.ACTION_STATE_NOT_SELECTED,
    plan_pb2.ACTION_STATE_EXPIRED,
    plan_pb2.ACTION_STATE_WITHDRAWN,
    plan_pb2.ACTION_STATE_SKIPPED,
    plan_pb2.ACTION_STATE_REFUSED,
    plan_pb2.ACTION_STATE_REVOKED,
    plan_pb2.ACTION_STATE_SUCCEEDED,
    plan_pb2.ACTION_STATE_FAILED,
    plan_pb2.ACTION_STATE_IN_DOUBT,
}


def word(state):
    return plan_pb2.ActionState.Name(state).removeprefix("ACTION_STATE_")


class Agent:
    """The plane as one run sees it."""

    def __init__(self, endpoint, ca, token):
        with open(ca, "rb") as file:
            credentials = grpc.ssl_channel_credentials(root_certificates=file.read())
        self.plans = plan_pb2_grpc.PlanServiceStub(grpc.secure_channel(endpoint, credentials))
        self.metadata = [("authorization", f"Bearer {token}")]

    def propose(self, context, calls):
        """Proposes calls of (tool, arguments, rationale); the answer has a state for each."""
        request = plan_pb2.ProposePlanRequest(
            context=context,
            # A repeat with the same key gives the same plan: keep it when you retry.
            idempotency_key=str(uuid.uuid4()),
            actions=[
                plan_pb2.ToolCall(tool=tool, arguments_json=json.dumps(arguments).encode(), rationale=rationale)
                for tool, arguments, rationale in calls
            ],
        )
        return self.plans.ProposePlan(request, metadata=self.metadata, timeout=30).plan

    def wait(self, plan, timeout):
        """Follows the plan until all its actions have ended; a person may take their time."""
        stream = self.plans.WatchPlan(
            plan_pb2.WatchPlanRequest(plan=plan.plan), metadata=self.metadata, timeout=timeout
        )
        for update in stream:
            plan = update.plan
            if all(action.state in ENDED for action in plan.actions):
                stream.cancel()
                break
        return plan


def main():
    to, body = sys.argv[1:3]
    timeout = float(os.environ.get("AGENT_TIMEOUT", "600"))
    agent = Agent(os.environ["EXEQUATUR_ENDPOINT"], os.environ["EXEQUATUR_CA"], os.environ["EXEQUATUR_RUN_TOKEN"])
    try:
        plan = agent.propose(
            "tell them about the change", [("sms.send", {"to": to, "body": body}, "the roster changed")]
        )
        print(f"plan {plan.plan} {plan.words}: {word(plan.actions[0].state)}", file=sys.stderr, flush=True)
        plan = agent.wait(plan, timeout)
    except grpc.RpcError as error:
        print(json.dumps({"error": error.code().name, "message": error.details()}))
        return 1
    actions = [
        {"tool": action.tool, "state": word(action.state), "reason": action.reason, "result": action.result.decode()}
        for action in plan.actions
    ]
    print(json.dumps({"plan": plan.plan, "actions": actions}))
    return 0 if all(action["state"] == "SUCCEEDED" for action in actions) else 1


if __name__ == "__main__":
    sys.exit(main())
