"""Pages of the saved workloads: all of them, and one with its document."""

from typing import Annotated

from fastapi import APIRouter, Query, Request, Response

from cliffwatch.http.context import Context, WorkloadName
from cliffwatch.http.paging import LIST_LIMIT
from cliffwatch.http.workload_resource import listed_workloads, workload_body
from cliffwatch.model.workload import workload_yaml
from cliffwatch.web.page import PageRoute, show
from cliffwatch.web.session import AnyVisitor

router = APIRouter(route_class=PageRoute, include_in_schema=False)


@router.get("/workloads")
def show_workloads(request: Request, services: Context, visitor: AnyVisitor) -> Response:
    """The newest version of each saved workload: what it does, and how long it lasts."""
    return show(request, "workloads.html", visitor, workloads=listed_workloads(services, LIST_LIMIT).items)


@router.get("/workloads/{name}")
def show_workload(
    request: Request,
    name: WorkloadName,
    services: Context,
    visitor: AnyVisitor,
    version: Annotated[int | None, Query(ge=1, le=2**31 - 1)] = None,
) -> Response:
    """A saved workload's document, of its newest version or of `version`."""
    found = workload_body(services.workloads.find(name, version))
    return show(request, "workload.html", visitor, workload=found, text=workload_yaml(found.document))
